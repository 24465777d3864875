"""The promise of every offset store, and the form of its values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from onceover.errors import TerminalError

MOST = (1 << 63) - 1  # Kafka's offsets are longs


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """The contents of a store: per Kafka partition the next offset to read, never the last one read, and the ID of the
    topic. `topic_id` is None if the store's format has no field for it; then the ledger keeps it.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    topic_id: str | None = None


class OffsetStore(Protocol):
    """A store of the next offset to read, per Kafka partition of one topic, for one group.

    Once `save` has returned, `load` returns those offsets from any machine: a save is durable, and happens whole or not
    at all. A Kafka partition without a save has no offset, which is not zero. A store does not decide which process may
    write: the driver's epoch does.
    """

    place: str
    """The location of its values, unique among the stores of its kind; errors name it, and the ledger has its owner."""

    in_ledger: bool = False
    """Whether `save` uses the ledger's connection, and so may share a transaction with the landings."""

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """Return the stored offsets, at least those of these Kafka partitions.

        Raises CorruptOffsetsError for a value that no store of ours wrote, UnreachableError without an answer.
        """

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """Replace the stored offsets by these, which are all that the topic's Kafka partitions have."""

    def close(self) -> None:
        """Close connections, if there are any; no method may be called afterwards."""
        return


class CorruptOffsetsError(TerminalError):
    """A value that no offset store of ours wrote: damaged, cut, of a later version, or of another program."""


def parse_offset(text: str | bytes, key: str) -> int:
    """Return an offset from decimal digits, as all stores write it. Raises CorruptOffsetsError, which names the key."""
    if is_number(text) and (offset := int(text)) <= MOST:
        return offset
    shown = text.decode("ascii", "backslashreplace") if isinstance(text, bytes) else text
    raise CorruptOffsetsError(f"{key} holds {shown[:40]!r}, which is not an offset")


def is_number(text: str | bytes) -> bool:
    """Return whether the text is 1 to 19 ASCII digits, which every reader takes for the same number."""
    return text.isascii() and text.isdigit() and len(text) <= 19


def parse_json(content: bytes) -> Any:
    """Return the JSON that a file of offsets holds. Raises ValueError for anything else, however deeply nested."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
