"""Refills: offset ranges to read again from Kafka, because they never landed and the log still has them.

The pipeline's driver carries them out: ingest if it runs, else the repair, for one window file has one writer.
`onceover.ledger.batches.land_batch` marks them landed, in the transaction in which they begin to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from onceover.ledger.database import Connection
from onceover.ledger.frontiers import read_holes
from onceover.ledger.locks import lock_rows
from onceover.ledger.offset_columns import read_range
from onceover.model.offsets import OffsetRange, intersect


def record_refills(connection: Connection, pipeline: str, request_id: int, ranges: Iterable[OffsetRange]) -> None:
    """Record these ranges as refills of a repair request; an open refill of the same start moves to that request.

    Leaves out what has landed since the ranges were chosen: no refill reads again what is not missing.
    """
    with connection.transaction():
        lock_rows(connection, pipeline, ())  # until then, a batch may land some of them
        missing = intersect(read_holes(connection, pipeline), ranges)
        connection.cursor().executemany(
            """
            INSERT INTO onceover.refill (pipeline, generation, kafka_partition, start_offset, end_offset, request_id)
            VALUES (%s, %s, %s, %s, %s, %s)
            ON CONFLICT (pipeline, generation, kafka_partition, start_offset) WHERE state = 'wanted'
            DO UPDATE SET request_id = excluded.request_id, end_offset = excluded.end_offset
            """,
            [(pipeline, r.source.generation, r.source.kafka_partition, r.start, r.end, request_id) for r in missing],
        )


def list_wanted(connection: Connection, pipeline: str, request_id: int | None = None) -> tuple[OffsetRange, ...]:
    """Return the ranges still to be read again, in order; of one request, if given."""
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.refill
        WHERE pipeline = %s AND state = 'wanted' AND (%s::bigint IS NULL OR request_id = %s) ORDER BY 1, 2, 3
        """,
        [pipeline, request_id, request_id],
    )
    return tuple(map(read_range, rows))


def refuse_refills(connection: Connection, pipeline: str, ranges: Sequence[OffsetRange], why: str) -> None:
    """Refuse these refills: the log no longer holds them. The hole stays, and is judged again."""
    connection.cursor().executemany(
        """
        UPDATE onceover.refill SET state = 'refused', reason = %s, finished_at = clock_timestamp()
        WHERE pipeline = %s AND generation = %s AND kafka_partition = %s AND start_offset = %s AND state = 'wanted'
        """,
        [(why, pipeline, r.source.generation, r.source.kafka_partition, r.start) for r in ranges],
    )


def mark_landed(connection: Connection, pipeline: str, batch_id: int) -> None:
    """Mark what the batch read of refills landed, inside the transaction in which the batch lands. The rest of a refill
    becomes a refill of its own, still to be read."""
    connection.execute(
        """
        WITH part AS (
          SELECT f.refill_id, int8range(f.start_offset, f.end_offset) AS whole,
            range_agg(int8range(f.start_offset, f.end_offset) * int8range(r.start_offset, r.end_offset)) AS landed
          FROM onceover.refill f JOIN onceover.batch_range r ON r.generation = f.generation
            AND r.kafka_partition = f.kafka_partition AND r.start_offset < f.end_offset
            AND f.start_offset < r.end_offset
          WHERE r.batch_id = %(batch)s AND f.pipeline = %(pipeline)s AND f.state = 'wanted' GROUP BY f.refill_id
        ), done AS (
          UPDATE onceover.refill f SET state = 'landed', batch_id = %(batch)s, finished_at = clock_timestamp(),
            start_offset = lower(part.landed), end_offset = upper(part.landed)
          FROM part WHERE f.refill_id = part.refill_id RETURNING f.*, part.whole, part.landed)
        INSERT INTO onceover.refill (pipeline, generation, kafka_partition, start_offset, end_offset, request_id)
        SELECT pipeline, generation, kafka_partition, lower(rest), upper(rest), request_id
        FROM done, unnest(int8multirange(whole) - landed) AS rest
        ON CONFLICT DO NOTHING -- two refills overlap where a loss was accepted between their requests
        """,
        {"batch": batch_id, "pipeline": pipeline},
    )


def list_refilled_windows(connection: Connection, pipeline: str, request_id: int) -> list[datetime]:
    """Return the starts of the closed windows in which a request's refills landed."""
    rows = connection.execute(
        """
        SELECT DISTINCT l.window_start FROM onceover.refill f JOIN onceover.landing l USING (batch_id)
        JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
        JOIN onceover.pipeline p ON p.name = w.pipeline
        WHERE f.pipeline = %s AND f.request_id = %s AND f.state = 'landed'
          AND (p.every_window_closed OR w.window_end <= p.watermark)
        ORDER BY 1
        """,
        [pipeline, request_id],
    )
    return [row["window_start"] for row in rows]
