"""Rollups: old batches joined to one, which is what a single batch would have left that had read and landed them all.

Proofs read the ranges, the sums and the bytes of batches, so each proof of the joined batch is the proof of one large
batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from onceover.model.batch import RangeRead
from onceover.model.digest import sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange

MAX_BATCHES: Final = 1_000
"""Batches of one rollup: it is one transaction, which holds their windows."""
LONGEST: Final = timedelta(hours=1)
"""Between the first and the last landing of a rollup; the age of raw counts from the last."""


@dataclass(frozen=True, slots=True)
class OldLanding:
    """A landing's place, which is a window or a day of quarantine, and the bytes `[byte_start, byte_end)` of that file.
    `kind` are the further facts that all landings of one place have to share."""

    place: datetime | date
    byte_start: int
    byte_end: int
    kind: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class OldBatch:
    """A batch that the driver of an `epoch` landed, with at most one range of each Kafka partition. `is_final`: Kafka
    holds none of its offsets any more, and each of its windows is certified as it is."""

    batch_id: int
    epoch: int
    contract_version: int
    landed_at: datetime
    ranges: tuple[RangeRead, ...]
    landings: tuple[OldLanding, ...]
    is_final: bool


class _Neighbours:
    """Batches that follow one another: where they end in each log and in each file."""

    def __init__(self, first: OldBatch) -> None:
        self.batches = [first]
        self._ends: dict[KafkaPartition, int] = {}
        self._has_epochs: dict[KafkaPartition, bool] = {}  # of ranges with records
        self._files: dict[datetime | date, tuple[int, tuple[bool, ...]]] = {}
        self._note(first)

    def take(self, batch: OldBatch) -> bool:
        """Take the batch if it begins exactly where these end, in each log and file that they share; return whether."""
        first = self.batches[0]
        if (
            len(self.batches) < MAX_BATCHES
            and (batch.epoch, batch.contract_version) == (first.epoch, first.contract_version)
            and batch.landed_at - first.landed_at < LONGEST
            and all(map(self._continues_log, batch.ranges))
            and all(self._files.get(x.place, (x.byte_start, x.kind)) == (x.byte_start, x.kind) for x in batch.landings)
        ):
            self.batches.append(batch)
            self._note(batch)
            return True
        return False

    def _continues_log(self, piece: RangeRead) -> bool:
        source, has_epochs = piece.offsets.source, bool(piece.leader_epochs)
        return self._ends.get(source, piece.offsets.start) == piece.offsets.start and (
            not piece.digest.records or self._has_epochs.get(source, has_epochs) == has_epochs
        )

    def _note(self, batch: OldBatch) -> None:
        self._ends |= {piece.offsets.source: piece.offsets.end for piece in batch.ranges}
        self._has_epochs |= {x.offsets.source: bool(x.leader_epochs) for x in batch.ranges if x.digest.records}
        self._files |= {each.place: (each.byte_end, each.kind) for each in batch.landings}


def plan_rollups(batches: Iterable[OldBatch]) -> Iterator[tuple[OldBatch, ...]]:
    """Yield the batches, in order, that are joined to one each; one that has none to be joined with comes alone.

    Leaves out batches that are not final, and the last ones: later batches may still join them.
    """
    run: _Neighbours | None = None
    for batch in batches:
        if run is not None and batch.is_final and run.take(batch):
            continue
        if run is not None:
            yield tuple(run.batches)
        run = _Neighbours(batch) if batch.is_final else None


def join_ranges(pieces: Iterable[RangeRead]) -> list[RangeRead]:
    """Return one range for each Kafka partition, from the first of its pieces, which are in order, to the last."""
    by_source: dict[KafkaPartition, list[RangeRead]] = {}
    for piece in pieces:
        by_source.setdefault(piece.offsets.source, []).append(piece)
    return [_join(source, pieces) for source, pieces in sorted(by_source.items())]


def _join(source: KafkaPartition, pieces: Sequence[RangeRead]) -> RangeRead:
    epochs: list[tuple[int, int]] = []
    for piece in pieces:
        epochs += [(epoch, first) for epoch, first in piece.leader_epochs if not epochs or epoch != epochs[-1][0]]
    return RangeRead(
        OffsetRange(source, pieces[0].offsets.start, pieces[-1].offsets.end),
        sum_digests(piece.digest for piece in pieces),
        max((piece.max_event_time for piece in pieces if piece.max_event_time), default=None),
        min((piece.oldest_record for piece in pieces if piece.oldest_record), default=None),
        tuple(epochs),
    )
