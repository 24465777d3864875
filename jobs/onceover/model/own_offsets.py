"""The offsets that a pipeline's own lines may have: every other intact line in its raw files was written elsewhere.

Ingest notes each generation and Kafka partition in the root's marker and in the ledger before it appends the first line
of it, and each batch's offsets in the ledger before it appends one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class OwnOffsets:
    """The `known` offsets of a pipeline's own Kafka partitions, and those `beyond`: at or after the end of a log that
    still grows, as far as ledger and log ever showed it. A line there is the pipeline's own if the ledger was restored
    and the log was cut, and forged otherwise."""

    known: tuple[OffsetRange, ...]
    beyond: tuple[OffsetRange, ...]


def find_own_offsets(
    ends: Mapping[KafkaPartition, int], marked: Iterable[KafkaPartition], held: Sequence[OffsetRange]
) -> OwnOffsets:
    """Return the own offsets: of the Kafka partitions that the root's marker names, and of the ledger's, up to the
    largest end that the ledger ever saw. `held` is all that Kafka's log holds now.

    Nothing is appended any more to a topic that was deleted, so its orphans have no such end.
    """
    log_ends = {piece.source: piece.end for piece in held}
    living = {source.generation for source in log_ends}
    known: list[OffsetRange] = []
    beyond: list[OffsetRange] = []
    for source in sorted({*ends, *marked}):
        end = max(ends.get(source, 0), log_ends.get(source, 0)) if source.generation in living else LARGEST_END
        known.append(OffsetRange(source, 0, end))
        beyond.append(OffsetRange(source, end, LARGEST_END))
    return OwnOffsets(tuple(known), tuple(piece for piece in beyond if len(piece)))
