"""Steps 1, 2, 5 and 7 of a batch: begun, landed, committed or superseded, each in one transaction under the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from onceover.batch import Landing, RangeRead, require_all_landed
from onceover.digest import Digest
from onceover.errors import FencedError
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_current
from onceover.ledger.locks import lock_windows
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.watermark import PartitionProgress, watermark


def supersede_own(connection: Connection, epoch: Epoch) -> int:
    """Step 1: whatever this epoch began earlier and did not land is a failed attempt; returns how many there were."""
    with connection.transaction():
        require_current(connection, epoch)
        return connection.execute(
            """
            UPDATE onceover.batch SET state = 'superseded', superseded_at = clock_timestamp(),
              superseded_why = 'failed attempt'
            WHERE pipeline = %s AND epoch = %s AND state = 'begun'
            """,
            [epoch.pipeline, epoch.number],
        ).rowcount


def begin(connection: Connection, epoch: Epoch, contract_version: int, ranges: Sequence[OffsetRange]) -> int:
    """Step 2: the batch and what it will read; returns its id."""
    with connection.transaction():
        require_current(connection, epoch)
        row = connection.execute(
            "INSERT INTO onceover.batch (pipeline, epoch, contract_version) VALUES (%s, %s, %s) RETURNING batch_id",
            [epoch.pipeline, epoch.number, contract_version],
        ).fetchone()
        batch_id = int(row["batch_id"]) if row else 0
        connection.cursor().executemany(
            """
            INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset)
            VALUES (%s, %s, %s, %s, %s)
            """,
            [(batch_id, r.source.generation, r.source.kafka_partition, r.start, r.end) for r in ranges],
        )
    return batch_id


def land(
    connection: Connection, epoch: Epoch, batch_id: int, read: Sequence[RangeRead], landings: Sequence[Landing]
) -> None:
    """Step 5: the landings count from here on, for ever.

    Raises LandingMismatchError unless they hold exactly what the reader delivered, FencedError if the batch was
    superseded meanwhile. Locks the windows in ascending order and bumps their versions.
    """
    require_all_landed(read, landings)
    with connection.transaction():
        require_current(connection, epoch)
        changed = connection.execute(
            "UPDATE onceover.batch SET state = 'landed', landed_at = clock_timestamp() "
            "WHERE batch_id = %s AND epoch = %s AND state = 'begun'",
            [batch_id, epoch.number],
        )
        if changed.rowcount != 1:
            raise FencedError(f"batch {batch_id} of pipeline {epoch.pipeline} was superseded; it does not count")
        windows = sorted({landing.window_start for landing in landings if landing.window_start})
        lock_windows(connection, epoch.pipeline, windows)
        for landing in landings:
            _insert_landing(connection, epoch.pipeline, batch_id, landing)
        connection.execute(
            'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = ANY(%s)',
            [epoch.pipeline, windows],
        )
        for piece in read:
            _record_read(connection, batch_id, piece)
            _advance(connection, epoch.pipeline, piece.offsets)


def committed(connection: Connection, epoch: Epoch, batch_id: int) -> None:
    """Step 7: the offset store holds the batch's ends."""
    with connection.transaction():
        require_current(connection, epoch)
        connection.execute(
            "UPDATE onceover.batch SET committed_at = clock_timestamp() WHERE batch_id = %s AND state = 'landed'",
            [batch_id],
        )


def register_partitions(
    connection: Connection,
    epoch: Epoch,
    topic_id: str,
    origins: Mapping[KafkaPartition, int],
    ends: Mapping[KafkaPartition, int],
) -> None:
    """Note each Kafka partition when it is first seen, its log's end, and since when it has been caught up: its
    frontier at the end, with nothing missing before.

    `origins` are where reading goes on. Accounting starts at the first one; one beyond the frontier is a hole from now
    on, whether or not anything is read after it.
    """
    with connection.transaction():
        require_current(connection, epoch)
        for source, end in sorted(ends.items()):
            connection.execute(
                """
                INSERT INTO onceover.kafka_partition AS k
                  (pipeline, generation, kafka_partition, topic_id, origin, frontier, reach, end_offset,
                   caught_up_since)
                VALUES (%(pipeline)s, %(generation)s, %(kafka_partition)s, %(topic_id)s, %(origin)s, %(origin)s,
                  %(origin)s, %(end)s, CASE WHEN %(origin)s >= %(end)s THEN clock_timestamp() END)
                ON CONFLICT (pipeline, generation, kafka_partition) DO UPDATE SET end_offset = excluded.end_offset,
                  reach = greatest(k.reach, excluded.origin),
                  caught_up_since = CASE
                    WHEN k.frontier < excluded.end_offset THEN NULL
                    WHEN k.end_offset < excluded.end_offset THEN clock_timestamp()
                    ELSE coalesce(k.caught_up_since, clock_timestamp()) END
                """,
                {
                    "pipeline": epoch.pipeline,
                    "generation": source.generation,
                    "kafka_partition": source.kafka_partition,
                    "topic_id": topic_id,
                    "origin": origins[source],
                    "end": end,
                },
            )


def advance_watermark(
    connection: Connection, epoch: Epoch, generation: str, allowed_lateness: timedelta, idle_after: timedelta
) -> tuple[datetime | None, bool]:
    """Judge the watermark anew and keep it; it never moves back. Returns it, and whether every window is closed."""
    with connection.transaction():
        require_current(connection, epoch)
        rows = connection.execute(
            """
            SELECT kafka_partition, max_event_time, clock_timestamp() - caught_up_since AS caught_up_for
            FROM onceover.kafka_partition WHERE pipeline = %s AND generation = %s
            """,
            [epoch.pipeline, generation],
        ).fetchall()
        progress = [PartitionProgress(row["max_event_time"], row["caught_up_for"]) for row in rows]
        moment, every_window_closed = watermark(progress, allowed_lateness, idle_after)
        row = connection.execute(
            """
            UPDATE onceover.pipeline SET watermark = greatest(watermark, %s), every_window_closed = %s
            WHERE name = %s RETURNING watermark
            """,
            [moment, every_window_closed, epoch.pipeline],
        ).fetchone()
    return (row["watermark"] if row else None), every_window_closed


def progress(connection: Connection, pipeline: str, generation: str) -> Mapping[KafkaPartition, tuple[int, int]]:
    """Frontier and reach of each known Kafka partition of that generation."""
    rows = connection.execute(
        "SELECT kafka_partition, frontier, reach FROM onceover.kafka_partition WHERE pipeline = %s AND generation = %s",
        [pipeline, generation],
    ).fetchall()
    return {KafkaPartition(generation, r["kafka_partition"]): (r["frontier"], r["reach"]) for r in rows}


def committed_offsets(connection: Connection, pipeline: str, generation: str) -> dict[int, int]:
    """Per Kafka partition the largest offset that a committed batch ended at, or where accounting started."""
    rows = connection.execute(
        """
        SELECT k.kafka_partition, greatest(k.origin, (
          SELECT max(r.end_offset) FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
          WHERE b.pipeline = k.pipeline AND b.committed_at IS NOT NULL AND r.generation = k.generation
            AND r.kafka_partition = k.kafka_partition)) AS committed
        FROM onceover.kafka_partition k WHERE k.pipeline = %s AND k.generation = %s
        """,
        [pipeline, generation],
    )
    return {row["kafka_partition"]: row["committed"] for row in rows}


def generations(connection: Connection, pipeline: str) -> list[str]:
    """The incarnations of its topic that the pipeline has read from."""
    rows = connection.execute(
        "SELECT DISTINCT generation FROM onceover.kafka_partition WHERE pipeline = %s ORDER BY 1", [pipeline]
    )
    return [row["generation"] for row in rows]


def _insert_landing(connection: Connection, pipeline: str, batch_id: int, landing: Landing) -> None:
    # A landing is late if its window had closed before: judged at the watermark that stood when the batch was read.
    row = connection.execute(
        """
        INSERT INTO onceover.landing (batch_id, pipeline, window_start, quarantine_day, byte_start, byte_end, proved,
          late, records, high1, low1, high2, low2)
        VALUES (%(batch_id)s, %(pipeline)s, %(window_start)s, %(quarantine_day)s, %(byte_start)s, %(byte_end)s,
          %(proved)s, coalesce((
            SELECT p.every_window_closed OR p.watermark >= w.window_end FROM onceover.pipeline p
            JOIN onceover."window" w ON w.pipeline = p.name AND w.window_start = %(window_start)s
            WHERE p.name = %(pipeline)s), false),
          %(records)s, %(high1)s, %(low1)s, %(high2)s, %(low2)s)
        RETURNING landing_id
        """,
        {
            "batch_id": batch_id,
            "pipeline": pipeline,
            "window_start": landing.window_start,
            "quarantine_day": landing.quarantine_day,
            "byte_start": landing.byte_start,
            "byte_end": landing.byte_end,
            "proved": landing.proved,
            **digest_columns(landing.digest),
        },
    ).fetchone()
    landing_id = row["landing_id"] if row else 0
    connection.cursor().executemany(
        """
        INSERT INTO onceover.landing_part (landing_id, generation, kafka_partition, records, high1, low1, high2, low2)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
        """,
        [
            (landing_id, part.source.generation, part.source.kafka_partition, *part.digest.as_tuple())
            for part in landing.parts
        ],
    )


def _record_read(connection: Connection, batch_id: int, piece: RangeRead) -> None:
    connection.execute(
        """
        UPDATE onceover.batch_range SET max_event_time = %s, records = %s, high1 = %s, low1 = %s, high2 = %s, low2 = %s
        WHERE batch_id = %s AND generation = %s AND kafka_partition = %s AND start_offset = %s
        """,
        [
            piece.max_event_time,
            *piece.digest.as_tuple(),
            batch_id,
            piece.offsets.source.generation,
            piece.offsets.source.kafka_partition,
            piece.offsets.start,
        ],
    )


def _advance(connection: Connection, pipeline: str, landed: OffsetRange) -> None:
    """Move reach, and the frontier over every landed range that now joins it; event times count only up to there."""
    key = {"pipeline": pipeline, "generation": landed.source.generation, "partition": landed.source.kafka_partition}
    row = connection.execute(
        """
        UPDATE onceover.kafka_partition SET reach = greatest(reach, %(end)s)
        WHERE pipeline = %(pipeline)s AND generation = %(generation)s AND kafka_partition = %(partition)s
        RETURNING frontier, reach
        """,
        {**key, "end": landed.end},
    ).fetchone()
    # One step in the normal case; more only where a landing closed a hole and later ranges now join.
    while row and row["frontier"] < row["reach"]:
        row = connection.execute(
            """
            UPDATE onceover.kafka_partition k
            SET frontier = n.end_offset, max_event_time = greatest(k.max_event_time, n.max_event_time)
            FROM (
              SELECT r.end_offset, r.max_event_time FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
              WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.generation = %(generation)s
                AND r.kafka_partition = %(partition)s AND r.start_offset <= %(frontier)s AND r.end_offset > %(frontier)s
              ORDER BY r.end_offset LIMIT 1
            ) n
            WHERE k.pipeline = %(pipeline)s AND k.generation = %(generation)s AND k.kafka_partition = %(partition)s
            RETURNING k.frontier, k.reach
            """,
            {**key, "frontier": row["frontier"]},
        ).fetchone()


def digest_columns(digest: Digest) -> dict[str, int]:
    """The digest as the columns that every table that holds one has."""
    return dict(zip(("records", "high1", "low1", "high2", "low2"), digest.as_tuple(), strict=True))


def digest_of(row: Mapping[str, object], prefix: str = "") -> Digest:
    """The digest that a row of the ledger holds."""
    return Digest(*(int(str(row[prefix + name] or 0)) for name in ("records", "high1", "low1", "high2", "low2")))


def accounted(connection: Connection, pipeline: str) -> Iterable[OffsetRange]:
    """The offset ranges of all landed batches, joined where they touch."""
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, lower(piece) AS start_offset, upper(piece) AS end_offset FROM (
          SELECT r.generation, r.kafka_partition,
            unnest(range_agg(int8range(r.start_offset, r.end_offset))) AS piece
          FROM onceover.batch b JOIN onceover.batch_range r USING (batch_id)
          WHERE b.pipeline = %s AND b.state = 'landed' GROUP BY r.generation, r.kafka_partition) pieces
        ORDER BY 1, 2, 3
        """,
        [pipeline],
    ).fetchall()
    return [
        OffsetRange(KafkaPartition(r["generation"], r["kafka_partition"]), r["start_offset"], r["end_offset"])
        for r in rows
    ]
