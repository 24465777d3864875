"""Offsets in the ledger itself, and the ledger's notes on every store: its pipeline and its topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from onceover.errors import UsageError
from onceover.ledger.database import Connection
from onceover.offset_stores.store import OffsetStore, StoredOffsets


class LedgerOffsetStore(OffsetStore):
    """The store `postgres`. Offsets are saved in the transaction of their landings: with this store alone a crash can
    neither repeat a landed batch nor skip one."""

    in_ledger = True

    def __init__(self, connection: Connection, pipeline: str) -> None:
        self._connection, self._pipeline = connection, pipeline
        self.place = f"the ledger, pipeline {pipeline}"

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        rows = self._connection.execute(
            "SELECT kafka_partition, next_offset, topic_id FROM onceover.stored_offset WHERE pipeline = %s",
            [self._pipeline],
        ).fetchall()
        if not rows:
            return StoredOffsets()
        return StoredOffsets({row["kafka_partition"]: row["next_offset"] for row in rows}, rows[0]["topic_id"])

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore."""
        self._connection.execute(
            """
            WITH removed AS (
              DELETE FROM onceover.stored_offset
              WHERE pipeline = %(pipeline)s AND kafka_partition <> ALL(%(at)s))
            INSERT INTO onceover.stored_offset (pipeline, kafka_partition, next_offset, topic_id)
            SELECT %(pipeline)s, p, o, %(topic_id)s
            FROM unnest(%(at)s::integer[], %(offsets)s::bigint[]) AS given (p, o)
            ON CONFLICT (pipeline, kafka_partition) DO UPDATE SET next_offset = excluded.next_offset,
              topic_id = excluded.topic_id
            """,
            {
                "pipeline": self._pipeline,
                "topic_id": topic_id,
                "at": list(offsets),
                "offsets": list(offsets.values()),
            },
        )

    def close(self) -> None:
        """See OffsetStore. The connection is the driver's."""


def claim_place(
    connection: Connection, pipeline: str, store: str, place: str, pipelines: Collection[str]
) -> str | None:
    """Record that this place, and no other one, holds this pipeline's offsets. Returns the ID of their topic, None if
    it is unknown.

    Raises UsageError if the place holds those of another of `pipelines`, or of one that is being ingested: two
    pipelines that move the same offsets skip each other's records.
    """
    row = connection.execute(
        """
        WITH left_behind AS (
          UPDATE onceover.offset_place SET pipeline = NULL
          WHERE pipeline = %(pipeline)s AND (store, place) <> (%(store)s, %(place)s))
        INSERT INTO onceover.offset_place AS p (store, place, pipeline) VALUES (%(store)s, %(place)s, %(pipeline)s)
        ON CONFLICT (store, place) DO UPDATE SET pipeline = excluded.pipeline
        WHERE p.pipeline IS NULL OR p.pipeline = excluded.pipeline OR NOT (p.pipeline = ANY(%(known)s) OR EXISTS (
          SELECT 1 FROM onceover.driver d
          WHERE d.pipeline = p.pipeline AND d.superseded_at IS NULL AND d.expires_at >= clock_timestamp()))
        RETURNING topic_id
        """,
        {"store": store, "place": place, "pipeline": pipeline, "known": sorted(pipelines)},
    ).fetchone()
    if row is None:
        raise UsageError(
            f"offset store {store}, {place}: pipeline {_read_owner(connection, store, place)} keeps its offsets there; "
            f"give {pipeline} a group of its own (`group` under [ingest] in its TOML), or another place"
        )
    topic_id: str | None = row["topic_id"]
    return topic_id


def read_topic_id(connection: Connection, store: str, place: str) -> str | None:
    """Return the ID of the topic whose offsets are in that place, None if it is unknown."""
    row = connection.execute(
        "SELECT topic_id FROM onceover.offset_place WHERE store = %s AND place = %s", [store, place]
    ).fetchone()
    return row["topic_id"] if row else None


def note_topic(connection: Connection, store: str, place: str, topic_id: str) -> None:
    """Record that the offsets in that place are of that topic."""
    connection.execute(
        "UPDATE onceover.offset_place SET topic_id = %s WHERE store = %s AND place = %s", [topic_id, store, place]
    )


def _read_owner(connection: Connection, store: str, place: str) -> str:
    row = connection.execute(
        "SELECT pipeline FROM onceover.offset_place WHERE store = %s AND place = %s", [store, place]
    ).fetchone()
    return str(row["pipeline"]) if row else "another"
