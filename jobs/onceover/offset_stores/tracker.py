"""The tracker of a driver's offsets, which keeps every store from another topic's values and from moving back."""

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
    """One driver's offset store, bound to the topic's ID: offsets of an earlier generation are never used, even those
    within the new log. If a store's format has no field for the ID, the ledger keeps it; offsets of an unknown topic
    are taken for this topic's, as those of an earlier consumer.
    """

    def __init__(self, connection: Connection, pipeline: str, kind: str, store: OffsetStore) -> None:
        self.store, self.kind = store, kind
        self._connection, self._pipeline = connection, pipeline
        self._taken = False
        self._noted: str | None = None  # the ID of the topic of the stored offsets
        self._held: dict[int, int] = {}

    def load(self, topic_id: str, kafka_partitions: Collection[int]) -> Mapping[int, int]:
        """Return the stored offsets of the topic of that ID, none if the store holds an earlier topic's.

        Raises CorruptOffsetsError, with the remedy, for values that no store of ours wrote; UsageError if the store
        holds another pipeline's offsets.
        """
        if not self._taken:
            self._noted = ledger.claim_place(self._connection, self._pipeline, self.kind, self.store.place, names())
            self._taken = True
        with explain_corrupt_offsets(self.kind, self._pipeline):
            stored = load_stored(self.store, self._noted, topic_id, kafka_partitions)
        self._noted, self._held = stored.topic_id, dict(stored.offsets)
        return self._held

    def begin(self, topic_id: str, starts: Mapping[int, int]) -> None:
        """Save `starts`, where reading continues, if they differ from the stored offsets. Only a truncated log moves an
        offset back."""
        if self._noted == topic_id and all(self._held.get(p) == at for p, at in starts.items()):
            return
        self.store.save(starts, topic_id)
        # After the save: a crash in between leaves these offsets noted as the other topic's, which are never used.
        ledger.note_topic(self._connection, self.kind, self.store.place, topic_id)
        self._noted, self._held = topic_id, dict(starts)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Save these offsets durably. One that is lower than the stored offset is refused, and logged."""
        kept = {p: max(offset, self._held.get(p, 0)) for p, offset in offsets.items()}
        if backwards := {p: (kept[p], offset) for p, offset in sorted(offsets.items()) if kept[p] != offset}:
            log.warning("%s: not committed backwards (stored, refused): %s", self.store.place, backwards)
        if not kept:
            return
        if self._noted is None:
            raise ValueError("commit before begin: call begin with the offsets where reading starts")
        state = {**self._held, **kept}
        self.store.save(state, self._noted)
        self._held = state


def load_stored(
    store: OffsetStore, noted: str | None, topic_id: str, kafka_partitions: Collection[int]
) -> StoredOffsets:
    """Return the stored offsets of the topic of that ID; if they are another topic's, no offsets and that topic's ID.

    `noted` is the ID in the ledger, for stores whose format has no field for it. Raises CorruptOffsetsError.
    """
    stored = store.load(kafka_partitions)
    stored_id = stored.topic_id or noted
    if stored_id is not None and stored_id != topic_id:
        return StoredOffsets({}, stored_id)
    if strangers := stored.offsets.keys() - set(kafka_partitions):
        raise CorruptOffsetsError(
            f"{store.place} holds an offset of Kafka partition {min(strangers)}, which the topic does not have"
        )
    return StoredOffsets(stored.offsets, stored_id)


@contextmanager
def explain_corrupt_offsets(kind: str, pipeline: str) -> Iterator[None]:
    """Add the store and the remedy to a CorruptOffsetsError."""
    try:
        yield
    except CorruptOffsetsError as error:
        raise CorruptOffsetsError(
            f"offset store {kind}: {error}; inspect it with `onceover offsets {pipeline} show`, and set where reading "
            f'continues with `onceover offsets {pipeline} set PARTITION=OFFSET... --reason "..."`'
        ) from error
