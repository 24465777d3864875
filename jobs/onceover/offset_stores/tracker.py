"""A pipeline's offset store, with what every store must be kept from: another topic's values, and going back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from onceover.config.pipelines import names
from onceover.ledger.database import Connection
from onceover.offset_stores import CorruptOffsetsError, OffsetStore, StoredOffsets
from onceover.offset_stores import postgres as ledger

log = logging.getLogger(__name__)


class OffsetTracker:
    """The store of one driver. The ID of the topic comes first: values of an earlier incarnation are never used, even
    those that lie within the new log. Where a store's format has no place for the ID, the ledger keeps it beside;
    values that nobody noted anything of are taken for this topic's, as those of a consumer that was here before us.
    """

    def __init__(self, connection: Connection, pipeline: str, kind: str, store: OffsetStore) -> None:
        self.store, self.kind = store, kind
        self._connection, self._pipeline = connection, pipeline
        self._taken = False
        self._noted: str | None = None  # the topic whose the values in the store are
        self._held: dict[int, int] = {}

    def load(self, topic_id: str, kafka_partitions: Collection[int]) -> Mapping[int, int]:
        """The stored offsets of the topic of that ID, none if the store holds an earlier one's.

        Raises CorruptOffsetsError, with the way out, for values that are not ours; UsageError if the store holds
        another pipeline's.
        """
        if not self._taken:
            self._noted = ledger.claim_place(self._connection, self._pipeline, self.kind, self.store.place, names())
            self._taken = True
        with explain_corrupt_offsets(self.kind, self._pipeline):
            found = load_stored(self.store, self._noted, topic_id, kafka_partitions)
        self._noted, self._held = found.topic_id, dict(found.offsets)
        return self._held

    def begin(self, topic_id: str, starts: Mapping[int, int]) -> None:
        """Reading goes on at `starts`, which are what is stored, moved into the log: keep them if that makes a
        difference. Only a log that was cut moves one back."""
        if self._noted == topic_id and all(self._held.get(p) == at for p, at in starts.items()):
            return
        self.store.save(starts, topic_id)
        # Only now: until then what lies there is another's, and after a crash is taken for it.
        ledger.note_topic(self._connection, self.kind, self.store.place, topic_id)
        self._noted, self._held = topic_id, dict(starts)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Keep these, durably; never one lower than what was there at the last load, which is logged."""
        kept = {p: max(offset, self._held.get(p, 0)) for p, offset in offsets.items()}
        if backwards := {p: (kept[p], offset) for p, offset in sorted(offsets.items()) if kept[p] != offset}:
            log.warning("%s: not committed backwards (stored, refused): %s", self.store.place, backwards)
        if not kept:
            return
        if self._noted is None:
            raise ValueError("offsets are committed before it was said where reading begins")
        state = {**self._held, **kept}
        self.store.save(state, self._noted)
        self._held = state


def load_stored(
    store: OffsetStore, noted: str | None, topic_id: str, kafka_partitions: Collection[int]
) -> StoredOffsets:
    """What the store holds of the topic of that ID: no offsets, and the other ID, where they are another topic's.

    `noted` is what the ledger says beside stores that have no place for the ID. Raises CorruptOffsetsError.
    """
    found = store.load(kafka_partitions)
    whose = found.topic_id or noted
    if whose is not None and whose != topic_id:
        return StoredOffsets({}, whose)
    if strangers := found.offsets.keys() - set(kafka_partitions):
        raise CorruptOffsetsError(
            f"{store.place} holds an offset of Kafka partition {min(strangers)}, which the topic has not"
        )
    return StoredOffsets(found.offsets, whose)


@contextmanager
def explain_corrupt_offsets(kind: str, pipeline: str) -> Iterator[None]:
    """A value that is not ours, told with its store and the way out."""
    try:
        yield
    except CorruptOffsetsError as error:
        raise CorruptOffsetsError(
            f"offset store {kind}: {error}; look with `onceover offsets {pipeline} show`, and say where to go on with "
            f'`onceover offsets {pipeline} set PARTITION=OFFSET... --reason "..."`'
        ) from error
