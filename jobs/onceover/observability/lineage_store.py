"""The ledger's part of lineage: the windows that a repair request published, and the offset ranges of their raw."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.model.offsets import OffsetRange, coalesce


@dataclass(frozen=True, slots=True)
class PublishedWindow:
    """A window as a repair published it: `lines` and `bytes` read, `rows` of the aggregates, and their revision.
    `rewritten` is false if the rows already agreed with raw."""

    window_start: datetime
    window_end: datetime
    lines: int
    bytes: int
    rows: int
    revision: int
    rewritten: bool


# Certificates that are no longer valid too: their repairs read and wrote all the same.
_CERTIFICATES = """
  onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
    AND r.request_id = %(request)s AND r.pipeline = %(pipeline)s AND r.state IN ('published', 'confirmed', 'revoked')"""


def read_published(
    connection: Connection, pipeline: str, request_id: int
) -> tuple[tuple[PublishedWindow, ...], tuple[OffsetRange, ...]]:
    """Return the windows that the request has published until now, in order, and the offset ranges of the batches of
    their landings, merged where they touch. The ranges hold records of other windows too. Reads one snapshot."""
    request = {"pipeline": pipeline, "request": request_id}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        windows = connection.execute(
            f"""
            SELECT r.window_start, w.window_end, r.lines_read AS lines, c.frozen_length AS bytes,
              c.aggregate_rows AS rows, (r.after ->> 'revision')::integer AS revision,
              r.after ->> 'revision' <> r.before ->> 'revision' AS rewritten
            FROM {_CERTIFICATES} JOIN onceover."window" w ON w.pipeline = r.pipeline
              AND w.window_start = r.window_start
            ORDER BY r.window_start
            """,
            request,
        ).fetchall()
        ranges = connection.execute(
            f"""
            SELECT DISTINCT b.generation, b.kafka_partition, b.start_offset, b.end_offset
            FROM {_CERTIFICATES}
            JOIN onceover.landing l ON l.pipeline = c.pipeline AND l.window_start = c.window_start
              AND l.landing_id <= c.last_landing
            JOIN onceover.landing_part p USING (landing_id)
            JOIN (
              SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range
              UNION ALL
              SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.released) b
              ON b.batch_id = l.batch_id AND b.generation = p.generation AND b.kafka_partition = p.kafka_partition
            """,
            request,
        ).fetchall()
    return tuple(PublishedWindow(**row) for row in windows), coalesce(map(read_range, ranges))
