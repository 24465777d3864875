"""Accepted losses: offsets that no log holds any more, and the windows whose certificates name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.ledger.columns import GIVEN, range_arrays
from onceover.ledger.database import Connection
from onceover.ledger.frontiers import advance, read_holes
from onceover.ledger.landed_offsets import list_landed
from onceover.ledger.log_limits import end_stopped, list_stopped
from onceover.ledger.read_again import mark_landed
from onceover.ledger.windows import bump_versions, lock_rows, require_locked
from onceover.model.offsets import KafkaPartition, OffsetRange, subtract
from onceover.model.stopped_range import StopCause


def record_loss(
    connection: Connection,
    pipeline: str,
    lost: Sequence[OffsetRange],
    start: datetime,
    end: datetime,
    who: str,
    why: str,
) -> list[datetime]:
    """Record the loss of these ranges of one Kafka partition, in order, advance the frontier over them, and reopen the
    windows in `[start, end)`, in one transaction. Returns those windows. Raises UsageError if some offsets landed
    meanwhile, or a batch may still land them.
    """
    source = lost[0].source
    with connection.transaction():
        windows = _lock_windows(connection, pipeline, start, end, source)
        if landed := subtract(lost, read_holes(connection, pipeline)):
            raise UsageError(f"{landed[0]} is no longer in a hole; see `onceover holes {pipeline}`")
        _reject_begun(connection, pipeline, OffsetRange(source, lost[0].start, lost[-1].end))
        _insert(connection, pipeline, lost, start, end, who, why, "lost")
        bump_versions(connection, pipeline, windows)
        advance(connection, pipeline, lost)
        connection.execute(  # what was lost may have had any event time: the log is quiet from now on only
            "UPDATE onceover.kafka_partition SET caught_up_since = NULL WHERE pipeline = %s AND generation = %s "
            "AND kafka_partition = %s",
            [pipeline, source.generation, source.kafka_partition],
        )
    return windows


def record_unreadable(
    connection: Connection,
    pipeline: str,
    span: OffsetRange,
    leader_epoch: int,
    start: datetime,
    end: datetime,
    who: str,
    why: str,
) -> list[datetime]:
    """Record that no reader gets the records of this span, reopen the windows in `[start, end)` and those that stated
    an earlier loss of it, and return them. Raises UsageError if the span landed, or a batch may still land some of it.

    A batch of no records accounts for the span, as read under the log's leader epoch there: it is no hole any more,
    until the log is cut. A batch that begins later and reads some of it all the same lands, and ends the loss of
    that.
    """
    with connection.transaction():
        stating = list_stating(connection, pipeline, [span])
        windows = _lock_windows(connection, pipeline, start, end, span.source, stating)
        require_locked(pipeline, frozenset(windows), list_stating(connection, pipeline, [span]))
        stopped = [each.offsets for each in list_stopped(connection, pipeline, StopCause.UNREADABLE)]
        stopped_still = subtract(stopped, list_landed(connection, pipeline, [span]))
        if subtract([span], [*read_holes(connection, pipeline), *stopped_still]):
            raise UsageError(f"{span} was read meanwhile; see `onceover holes {pipeline}`")
        _reject_begun(connection, pipeline, span)
        reland(connection, pipeline, [span])
        end_stopped(connection, pipeline, StopCause.UNREADABLE, span.source)
        batch = connection.execute(
            """
            WITH fresh AS (
              INSERT INTO onceover.batch (pipeline, epoch, contract_version, state, landed_at)
              SELECT p.name, coalesce(d.epoch, 0), p.contract_version, 'landed', clock_timestamp()
              FROM onceover.pipeline p LEFT JOIN onceover.driver d ON d.pipeline = p.name AND d.superseded_at IS NULL
              WHERE p.name = %s RETURNING batch_id)
            INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, records,
              high1, low1, high2, low2, leader_epochs) SELECT batch_id, %s, %s, %s, %s, 0, 0, 0, 0, 0, %s FROM fresh
            RETURNING batch_id
            """,
            [
                pipeline,
                span.source.generation,
                span.source.kafka_partition,
                span.start,
                span.end,
                Jsonb([[leader_epoch, span.start]]),
            ],
        ).fetchone()
        _insert(connection, pipeline, [span], start, end, who, why, "unreadable")
        mark_landed(connection, pipeline, batch["batch_id"] if batch else 0)
        bump_versions(connection, pipeline, windows)
        advance(connection, pipeline, [span])
    return windows


def _lock_windows(
    connection: Connection,
    pipeline: str,
    start: datetime,
    end: datetime,
    source: KafkaPartition,
    more: Iterable[datetime] = (),
) -> list[datetime]:
    rows = connection.execute(
        'SELECT window_start FROM onceover."window" WHERE pipeline = %s AND window_start >= %s AND window_start < %s',
        [pipeline, start, end],
    )
    return sorted(lock_rows(connection, pipeline, {*more, *(row["window_start"] for row in rows)}, [source]))


def _insert(
    connection: Connection,
    pipeline: str,
    lost: Sequence[OffsetRange],
    start: datetime,
    end: datetime,
    who: str,
    why: str,
    kind: str,
) -> None:
    connection.cursor().executemany(
        """
        INSERT INTO onceover.accepted_loss
          (pipeline, generation, kafka_partition, start_offset, end_offset, first_window, end_window, who, why, kind)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        """,
        [
            (pipeline, r.source.generation, r.source.kafka_partition, r.start, r.end, start, end, who, why, kind)
            for r in lost
        ],
    )


def _reject_begun(connection: Connection, pipeline: str, span: OffsetRange) -> None:
    """Raise UsageError if a batch has begun to read some of the span: it may read what others could not."""
    row = connection.execute(
        """
        SELECT b.batch_id FROM onceover.batch b JOIN onceover.batch_range r USING (batch_id)
        WHERE b.pipeline = %s AND b.state = 'begun' AND r.generation = %s AND r.kafka_partition = %s
          AND r.start_offset < %s AND %s < r.end_offset LIMIT 1
        """,
        [pipeline, span.source.generation, span.source.kafka_partition, span.end, span.start],
    ).fetchone()
    if row:
        raise UsageError(
            f"batch {row['batch_id']} has begun to read some of {span} and may still land them; wait for it, or, if "
            f"its driver is dead, run `onceover ingest {pipeline}`, which supersedes it"
        )


def list_stating(connection: Connection, pipeline: str, ids: Iterable[OffsetRange]) -> list[datetime]:
    """Return the windows whose certificates state an accepted loss of some of these IDs, in order."""
    rows = connection.execute(
        f"""
        SELECT DISTINCT w.window_start FROM onceover.accepted_loss a JOIN {GIVEN} ON {_OVERLAPS}
        JOIN onceover."window" w ON w.pipeline = a.pipeline
          AND w.window_start >= a.first_window AND w.window_start < a.end_window
        WHERE a.pipeline = %(pipeline)s AND a.relanded_at IS NULL ORDER BY 1
        """,
        {"pipeline": pipeline, **range_arrays(ids)},
    )
    return [row["window_start"] for row in rows]


def reland(connection: Connection, pipeline: str, ids: Sequence[OffsetRange]) -> None:
    """Delete IDs that landed after all from the accepted losses; what stays lost of a loss becomes a loss of its own.

    The windows that state these losses change: the caller holds their locks and bumps their versions.
    """
    connection.execute(
        f"""
        WITH found AS (
          SELECT a.loss_id, range_agg(int8range(g.start_offset, g.end_offset)) AS landed
          FROM onceover.accepted_loss a JOIN {GIVEN} ON {_OVERLAPS}
          WHERE a.pipeline = %(pipeline)s AND a.relanded_at IS NULL GROUP BY 1
        ), closed AS (
          UPDATE onceover.accepted_loss a SET relanded_at = clock_timestamp() FROM found
          WHERE a.loss_id = found.loss_id RETURNING a.*, found.landed)
        INSERT INTO onceover.accepted_loss
          (pipeline, generation, kafka_partition, start_offset, end_offset, first_window, end_window, who, why, kind,
           created_at)
        SELECT pipeline, generation, kafka_partition, lower(piece), upper(piece), first_window, end_window, who, why,
          kind, created_at
        FROM (SELECT c.*, unnest(int8multirange(int8range(start_offset, end_offset)) - landed) AS piece FROM closed c) p
        """,
        {"pipeline": pipeline, **range_arrays(ids)},
    )


_OVERLAPS = """a.generation = g.generation AND a.kafka_partition = g.kafka_partition
    AND a.start_offset < g.end_offset AND g.start_offset < a.end_offset"""


def list_neighbours(connection: Connection, pipeline: str, gap: OffsetRange, most: int) -> list[datetime]:
    """Return at most `most` windows in which the landed batches next to a gap landed records of its Kafka partition."""
    rows = connection.execute(
        """
        WITH nearest AS (
          (SELECT r.batch_id FROM onceover.batch_range r
            WHERE r.generation = %(generation)s AND r.kafka_partition = %(partition)s AND r.end_offset <= %(start)s
              AND (SELECT b.pipeline = %(pipeline)s AND b.state = 'landed' FROM onceover.batch b
                WHERE b.batch_id = r.batch_id)
            ORDER BY r.end_offset DESC LIMIT 1)
          UNION ALL
          (SELECT r.batch_id FROM onceover.batch_range r
            WHERE r.generation = %(generation)s AND r.kafka_partition = %(partition)s AND r.start_offset >= %(end)s
              AND (SELECT b.pipeline = %(pipeline)s AND b.state = 'landed' FROM onceover.batch b
                WHERE b.batch_id = r.batch_id)
            ORDER BY r.start_offset LIMIT 1))
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
