"""What every place that keeps a pipeline's offsets must promise, and what its values may look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from onceover.errors import TerminalError

MOST = (1 << 63) - 1  # Kafka's offsets are longs


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """What a store holds: per Kafka partition the next offset to read, never the last one read, and the ID of the topic
    they are of. `topic_id` is None where the store's format has no place for it; the ledger keeps it beside then.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    topic_id: str | None = None


class OffsetStore(Protocol):
    """Per Kafka partition of one topic the next offset to read, for one group.

    What `save` returned from is what the next `load` sees, from anywhere: it is durable, and whole or not there at all.
    A Kafka partition that nobody saved has no offset, which is not zero. Who may write is not a store's business: the
    driver's epoch decides that.
    """

    place: str
    """Where its values lie, unique among the stores of its kind; errors name it, and the ledger says whose it is."""

    in_ledger: bool
    """Whether `save` writes to the ledger's connection, and so may share a transaction with the landings."""

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """What is stored; for stores that must be asked by Kafka partition, of these.

        Raises CorruptOffsetsError for a value that is not one of ours, UnreachableError if the store does not answer.
        """

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """Keep these, the offsets of every Kafka partition that has one, in place of whatever is there."""

    def close(self) -> None:
        """Let connections go; nothing may be called afterwards."""


class CorruptOffsetsError(TerminalError):
    """A value that no offset store of ours wrote: damaged, cut, of a later version, or somebody else's."""


def parse_offset(text: str | bytes, key: str) -> int:
    """An offset as all stores write it, in decimal digits; CorruptOffsetsError names the key for anything else."""
    if text.isascii() and text.isdigit() and len(text) <= 19 and (offset := int(text)) <= MOST:
        return offset
    shown = text.decode("ascii", "backslashreplace") if isinstance(text, bytes) else text
    raise CorruptOffsetsError(f"{key} holds {shown[:40]!r}, which is no offset")
