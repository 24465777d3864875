"""Accepted losses: offsets that no log holds any more, and the windows whose certificates name them."""

from __future__ import annotations

from datetime import datetime

from onceover.ledger.database import Connection
from onceover.ledger.frontiers import advance
from onceover.model.offsets import OffsetRange


def record_loss(
    connection: Connection, pipeline: str, lost: OffsetRange, start: datetime, end: datetime, who: str, why: str
) -> list[datetime]:
    """Record the loss, advance the frontier over it, and reopen the windows in `[start, end)`, in one transaction.
    Returns those windows."""
    with connection.transaction():
        connection.execute(
            """
            INSERT INTO onceover.accepted_loss
              (pipeline, generation, kafka_partition, start_offset, end_offset, first_window, end_window, who, why)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [pipeline, lost.source.generation, lost.source.kafka_partition, lost.start, lost.end, start, end, who, why],
        )
        rows = connection.execute(
            """
            WITH locked AS (
              SELECT window_start FROM onceover."window"
              WHERE pipeline = %s AND window_start >= %s AND window_start < %s ORDER BY window_start FOR UPDATE)
            UPDATE onceover."window" w SET version = version + 1 FROM locked
            WHERE w.pipeline = %s AND w.window_start = locked.window_start RETURNING w.window_start
            """,
            [pipeline, start, end, pipeline],
        ).fetchall()
        advance(connection, pipeline, lost)
    return sorted(row["window_start"] for row in rows)


def list_neighbours(connection: Connection, pipeline: str, gap: OffsetRange, most: int) -> list[datetime]:
    """Return at most `most` windows in which the landed batches next to a gap landed records of its Kafka partition."""
    rows = connection.execute(
        """
        WITH beside AS (
          SELECT r.batch_id, r.end_offset <= %(start)s AS before,
            CASE WHEN r.end_offset <= %(start)s THEN %(start)s - r.end_offset ELSE r.start_offset - %(end)s END AS apart
          FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
          WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.generation = %(generation)s
            AND r.kafka_partition = %(partition)s AND (r.end_offset <= %(start)s OR r.start_offset >= %(end)s)
        ), nearest AS (
          SELECT DISTINCT ON (before) batch_id FROM beside ORDER BY before, apart, batch_id)
        SELECT DISTINCT l.window_start FROM nearest JOIN onceover.landing l USING (batch_id)
        JOIN onceover.landing_part p USING (landing_id)
        WHERE p.generation = %(generation)s AND p.kafka_partition = %(partition)s AND l.window_start IS NOT NULL
        ORDER BY 1 LIMIT %(most)s
        """,
        {
            "pipeline": pipeline,
            "generation": gap.source.generation,
            "partition": gap.source.kafka_partition,
            "start": gap.start,
            "end": gap.end,
            "most": most,
        },
    )
    return [row["window_start"] for row in rows]
