"""What is to be read again from Kafka: offsets of holes, which never landed, and what one window's raw has lost.

The pipeline's driver carries it out: ingest if it runs, else the repair, for one window file has one writer. A hole
lands like any batch, and is marked in the transaction in which it begins to count. Damage lands nothing, for its
records have landed: its lines are appended to that one window once more, and a repair proves the landings by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.ledger.columns import range_arrays, read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch, supersede_begun
from onceover.ledger.frontiers import read_holes
from onceover.ledger.windows import bump_versions, lock_rows
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange, intersect


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """One range to read again: of a hole, or for one window, by the contract version that its records had."""

    offsets: OffsetRange
    window_start: datetime | None = None
    contract_version: int = 0
    number: int = 0

    @property
    def is_hole(self) -> bool:
        return self.window_start is None


def request_ranges(connection: Connection, pipeline: str, request_id: int, wanted: Iterable[ReadAgain]) -> None:
    """Record these ranges as a repair request's, in place of those that wait and overlap them, and have the damaged
    windows judged again: until they are repaired, their certificates' raw is not whole.

    Leaves out of holes what has landed since they were chosen: what is not missing is not read again.
    """
    listed = list(wanted)
    damage = [each for each in listed if not each.is_hole]
    windows = sorted({each.window_start for each in damage if each.window_start})
    with connection.transaction():
        lock_rows(connection, pipeline, windows)  # until then, a batch may land some of the holes
        bump_versions(connection, pipeline, windows)
        missing = intersect(read_holes(connection, pipeline), [each.offsets for each in listed if each.is_hole])
        chosen = [*map(ReadAgain, missing), *damage]
        connection.execute(
            """
            WITH given AS (
              SELECT * FROM unnest(%(windows)s::timestamptz[], %(versions)s::integer[], %(generations)s::text[],
                %(partitions)s::integer[], %(starts)s::bigint[], %(ends)s::bigint[])
              AS g (window_start, contract_version, generation, kafka_partition, start_offset, end_offset)
            ), replaced AS (
              UPDATE onceover.read_again a
              SET state = 'refused', reason = 'requested again', finished_at = clock_timestamp()
              FROM (SELECT window_start, generation, kafka_partition,
                  range_agg(int8range(start_offset, end_offset)) AS ranges FROM given GROUP BY 1, 2, 3) g
              WHERE a.pipeline = %(pipeline)s AND a.state = 'wanted'
                AND a.window_start IS NOT DISTINCT FROM g.window_start AND a.generation = g.generation
                AND a.kafka_partition = g.kafka_partition
                AND int8range(a.start_offset, a.end_offset) && g.ranges)
            INSERT INTO onceover.read_again (pipeline, request_id, window_start, contract_version, generation,
              kafka_partition, start_offset, end_offset) SELECT %(pipeline)s, %(request)s, * FROM given
            """,
            {
                "pipeline": pipeline,
                "request": request_id,
                "windows": [each.window_start for each in chosen],
                "versions": [each.contract_version or None for each in chosen],
                **range_arrays(each.offsets for each in chosen),
            },
        )


def list_wanted(connection: Connection, pipeline: str, request_id: int | None = None) -> tuple[ReadAgain, ...]:
    """Return what is still to be read again, in the order of the requests; of one request, if given. Leaves out damage
    of windows that have expired since."""
    rows = connection.execute(
        """
        SELECT a.* FROM onceover.read_again a LEFT JOIN onceover."window" w USING (pipeline, window_start)
        WHERE a.pipeline = %s AND a.state = 'wanted' AND (%s::bigint IS NULL OR a.request_id = %s)
          AND w.expired_at IS NULL
        ORDER BY a.read_again_id
        """,
        [pipeline, request_id, request_id],
    )
    return tuple(
        ReadAgain(read_range(row), row["window_start"], row["contract_version"] or 0, row["read_again_id"])
        for row in rows
    )


def list_refused(connection: Connection, pipeline: str, request_id: int) -> tuple[tuple[OffsetRange, str], ...]:
    """Return the ranges of that request that were not read again, each with the reason."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset, reason FROM onceover.read_again "
        "WHERE pipeline = %s AND request_id = %s AND state = 'refused' ORDER BY read_again_id",
        [pipeline, request_id],
    )
    return tuple((read_range(row), row["reason"]) for row in rows)


def finish(
    connection: Connection,
    epoch: Epoch,
    ranges: Sequence[ReadAgain],
    batch_id: int | None = None,
    refused_why: str | None = None,
) -> None:
    """Record that damage was appended, or that ranges were refused and why: what is still missing then is judged again.
    Supersedes the batch that read them, which lands nothing."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(
            "UPDATE onceover.read_again SET state = %s, reason = %s, finished_at = clock_timestamp() "
            "WHERE read_again_id = ANY(%s) AND state <> 'landed'",  # a person may accept a hole's loss meanwhile
            ["refused" if refused_why else "appended", refused_why, [each.number for each in ranges]],
        )
        if batch_id is not None:
            supersede_begun(connection, epoch.pipeline, batch_id)


def mark_landed(connection: Connection, pipeline: str, batch_id: int) -> None:
    """Mark what the batch read of holes landed, inside the transaction in which the batch lands. The rest of a range
    becomes a range of its own, still to be read."""
    connection.execute(
        """
        WITH part AS (
          SELECT a.read_again_id, int8range(a.start_offset, a.end_offset) AS whole,
            range_agg(int8range(a.start_offset, a.end_offset) * int8range(r.start_offset, r.end_offset)) AS landed
          FROM onceover.read_again a JOIN onceover.batch_range r ON r.generation = a.generation
            AND r.kafka_partition = a.kafka_partition AND r.start_offset < a.end_offset
            AND a.start_offset < r.end_offset
          WHERE r.batch_id = %(batch)s AND a.pipeline = %(pipeline)s AND a.state = 'wanted' AND a.window_start IS NULL
          GROUP BY 1
        ), done AS (
          UPDATE onceover.read_again a SET state = 'landed', batch_id = %(batch)s, finished_at = clock_timestamp(),
            start_offset = lower(part.landed), end_offset = upper(part.landed)
          FROM part WHERE a.read_again_id = part.read_again_id RETURNING a.*, part.whole, part.landed)
        INSERT INTO onceover.read_again (pipeline, generation, kafka_partition, start_offset, end_offset, request_id)
        SELECT pipeline, generation, kafka_partition, lower(rest), upper(rest), request_id
        FROM done, unnest(int8multirange(whole) - landed) AS rest
        """,
        {"batch": batch_id, "pipeline": pipeline},
    )


def add_landed_windows(connection: Connection, pipeline: str, request_id: int) -> None:
    """Add the closed windows in which a request's holes have landed to those that it repairs."""
    connection.execute(
        """
        INSERT INTO onceover.repair (request_id, pipeline, window_start, findings)
        SELECT DISTINCT a.request_id, a.pipeline, l.window_start, %s
        FROM onceover.read_again a JOIN onceover.landing l USING (batch_id)
        JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
        JOIN onceover.pipeline p ON p.name = w.pipeline
        WHERE a.pipeline = %s AND a.request_id = %s AND a.state = 'landed'
          AND (p.every_window_closed OR w.window_end <= p.watermark)
        ON CONFLICT DO NOTHING
        """,
        [Jsonb([Finding(Kind.HOLE, {"read_again": True})]), pipeline, request_id],
    )


def refuse_cut_holes(connection: Connection, pipeline: str, beyond: OffsetRange) -> None:
    """Refuse the holes that wait and have offsets in this range, where the log was cut. Detection requests what is
    missing again."""
    connection.execute(
        """
        UPDATE onceover.read_again SET state = 'refused', reason = 'the log was cut before it was read again',
          finished_at = clock_timestamp()
        WHERE pipeline = %s AND window_start IS NULL AND state = 'wanted' AND generation = %s AND kafka_partition = %s
          AND start_offset < %s AND end_offset > %s
        """,
        [pipeline, beyond.source.generation, beyond.source.kafka_partition, beyond.end, beyond.start],
    )
