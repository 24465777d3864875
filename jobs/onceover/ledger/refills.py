"""Refills: offset ranges to read again from Kafka, because they never landed and the log still has them.

The pipeline's driver carries them out: ingest if it runs, else the repair, for one window file has one writer.
`onceover.ledger.batches.land_batch` marks them landed, in the transaction in which they begin to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from onceover.ledger.database import Connection
from onceover.model.offsets import KafkaPartition, OffsetRange


def record_refills(connection: Connection, pipeline: str, request_id: int, ranges: Iterable[OffsetRange]) -> None:
    """Record these ranges as refills of a repair request; an open refill of the same start moves to that request."""
    connection.cursor().executemany(
        """
        INSERT INTO onceover.refill (pipeline, generation, kafka_partition, start_offset, end_offset, request_id)
        VALUES (%s, %s, %s, %s, %s, %s)
        ON CONFLICT (pipeline, generation, kafka_partition, start_offset) WHERE state = 'wanted'
        DO UPDATE SET request_id = excluded.request_id, end_offset = excluded.end_offset
        """,
        [(pipeline, r.source.generation, r.source.kafka_partition, r.start, r.end, request_id) for r in ranges],
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
    return tuple(
        OffsetRange(KafkaPartition(r["generation"], r["kafka_partition"]), r["start_offset"], r["end_offset"])
        for r in rows
    )


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
    """Mark the refills within the batch's ranges landed, inside the transaction in which the batch lands."""
    connection.execute(
        """
        UPDATE onceover.refill f SET state = 'landed', batch_id = %(batch)s, finished_at = clock_timestamp()
        FROM onceover.batch_range r
        WHERE r.batch_id = %(batch)s AND f.pipeline = %(pipeline)s AND f.state = 'wanted'
          AND r.generation = f.generation AND r.kafka_partition = f.kafka_partition
          AND r.start_offset <= f.start_offset AND f.end_offset <= r.end_offset
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
