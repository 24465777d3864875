"""Kafka partitions in the ledger: origin, frontier and reach of each, and the pipeline's watermark, from their event
times and holes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.windows import lock_rows
from onceover.model.batch_plan import Start
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import PartitionProgress, compute_watermark

# The settled offset ranges of a pipeline: those of landed batches, but for what is past since the log was cut, and
# accepted losses. An index has their `read_end`.
_SETTLED = """
  SELECT r.generation, r.kafka_partition, r.start_offset, least(r.end_offset, r.past_from) AS end_offset,
    CASE WHEN r.past_from IS NULL THEN r.max_event_time END AS max_event_time, r.end_offset AS read_end
  FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
  WHERE b.pipeline = %(pipeline)s AND b.state = 'landed'
  UNION ALL
  SELECT generation, kafka_partition, start_offset, end_offset, NULL, end_offset FROM onceover.accepted_loss
  WHERE pipeline = %(pipeline)s AND relanded_at IS NULL"""


EXTRAS_ARE_SETTLED: Final = """
  NOT EXISTS (SELECT FROM jsonb_array_elements(c.extras) extra LEFT JOIN onceover.kafka_partition k
    ON k.pipeline = c.pipeline AND k.generation = extra ->> 0 AND k.kafka_partition = (extra ->> 1)::integer
    WHERE coalesce((extra ->> 3)::bigint > k.frontier, true))"""
"""Whether nothing reads the offsets of the extras of certificate c again, as each lies below the frontier."""


def register_kafka_partitions(
    connection: Connection,
    epoch: Epoch,
    topic_id: str,
    starts: Mapping[KafkaPartition, Start],
    ends: Mapping[KafkaPartition, int],
    high: Mapping[KafkaPartition, int] | None = None,
) -> None:
    """Record each Kafka partition, its log's end, and since when nothing with an event time arrived there, as of a
    moment at which its frontier was at the end and no open transaction hid records up to `high`.

    Reading continues at `starts`. Accounting begins at the first start's origin; offsets between the frontier and a
    start are a hole from now on, whether or not a batch follows. A log that ends before the stored offset is a finding
    until it reaches that offset again.
    """
    with connection.transaction():
        require_epoch(connection, epoch)
        for source, end in sorted(ends.items()):
            connection.execute(
                """
                INSERT INTO onceover.kafka_partition AS k
                  (pipeline, generation, kafka_partition, topic_id, origin, frontier, reach, end_offset,
                   high_watermark, caught_up_since, truncated_from, hidden_since)
                VALUES (%(pipeline)s, %(generation)s, %(kafka_partition)s, %(topic_id)s, %(origin)s, %(origin)s,
                  %(start)s, %(end)s, %(high)s, CASE WHEN %(origin)s >= %(high)s THEN clock_timestamp() END,
                  %(truncated)s, CASE WHEN %(high)s > %(end)s THEN clock_timestamp() END)
                ON CONFLICT (pipeline, generation, kafka_partition) DO UPDATE SET end_offset = excluded.end_offset,
                  high_watermark = excluded.high_watermark, reach = greatest(k.reach, excluded.reach),
                  hidden_since = CASE WHEN excluded.hidden_since IS NULL OR k.end_offset <> excluded.end_offset
                    THEN excluded.hidden_since ELSE coalesce(k.hidden_since, excluded.hidden_since) END,
                  truncated_from = greatest(excluded.truncated_from,
                    CASE WHEN k.truncated_from > excluded.end_offset THEN k.truncated_from END),
                  read_until = CASE WHEN k.frontier < excluded.high_watermark THEN k.read_until
                    ELSE clock_timestamp() END,
                  caught_up_since = CASE WHEN k.frontier < excluded.high_watermark THEN k.caught_up_since
                    ELSE coalesce(k.caught_up_since, clock_timestamp()) END
                """,
                {
                    "pipeline": epoch.pipeline,
                    "generation": source.generation,
                    "kafka_partition": source.kafka_partition,
                    "topic_id": topic_id,
                    "origin": starts[source].origin,
                    "start": starts[source].at,
                    "truncated": starts[source].truncated_from,
                    "end": end,
                    "high": max(end, (high or ends)[source]),
                },
            )


def retire_generations(connection: Connection, epoch: Epoch, living: str) -> None:
    """Retire all generations of the topic but `living`, after the topic was recreated: their unread offsets are holes
    for ever, and their truncations no longer matter."""
    with connection.transaction():
        require_epoch(connection, epoch)
        lock_rows(connection, epoch.pipeline, ())
        connection.execute(
            "UPDATE onceover.kafka_partition SET reach = greatest(reach, end_offset, high_watermark), "
            "truncated_from = NULL, cut_from = NULL, hidden_since = NULL WHERE pipeline = %s AND generation <> %s "
            "AND (reach < greatest(end_offset, high_watermark) OR truncated_from IS NOT NULL OR reach <= cut_from)",
            [epoch.pipeline, living],
        )


def read_origins(connection: Connection, pipeline: str) -> dict[KafkaPartition, int]:
    """Return where accounting begins, by generation and Kafka partition."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, origin FROM onceover.kafka_partition WHERE pipeline = %s", [pipeline]
    )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["origin"] for row in rows}


def read_reach(connection: Connection, pipeline: str) -> dict[KafkaPartition, int]:
    """Return the end of what may have landed: nearly every batch begins there, and overlaps nothing."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, greatest(reach, past_to) AS reach FROM onceover.kafka_partition "
        "WHERE pipeline = %s",
        [pipeline],
    )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["reach"] for row in rows}


def read_holes(connection: Connection, pipeline: str) -> list[OffsetRange]:
    """Return the holes between each frontier and its reach: offsets neither landed nor accepted as lost."""
    rows = connection.execute(
        f"""
        SELECT generation, kafka_partition, lower(piece) AS start_offset, upper(piece) AS end_offset FROM (
          SELECT k.generation, k.kafka_partition, unnest(int8multirange(int8range(k.frontier, k.reach)) - coalesce((
            SELECT range_agg(int8range(s.start_offset, s.end_offset)) FROM ({_SETTLED}) s
            WHERE s.generation = k.generation AND s.kafka_partition = k.kafka_partition AND s.read_end > k.frontier
          ), '{{}}')) AS piece
          FROM onceover.kafka_partition k WHERE k.pipeline = %(pipeline)s AND k.frontier < k.reach) pieces
        ORDER BY 1, 2, 3
        """,
        {"pipeline": pipeline},
    )
    return list(map(read_range, rows))


def read_progress(connection: Connection, pipeline: str, generation: str) -> Mapping[KafkaPartition, tuple[int, int]]:
    """Return frontier and reach of each registered Kafka partition of that generation."""
    rows = connection.execute(
        "SELECT kafka_partition, frontier, reach FROM onceover.kafka_partition WHERE pipeline = %s AND generation = %s",
        [pipeline, generation],
    ).fetchall()
    return {KafkaPartition(generation, r["kafka_partition"]): (r["frontier"], r["reach"]) for r in rows}


def read_committed_offsets(connection: Connection, pipeline: str, generation: str) -> dict[int, int]:
    """Return per Kafka partition the largest end of a committed batch that is not past, or the origin if that is
    larger."""
    rows = connection.execute(
        """
        SELECT k.kafka_partition, greatest(k.origin, (
          SELECT r.end_offset FROM onceover.batch_range r
          WHERE r.generation = k.generation AND r.kafka_partition = k.kafka_partition AND r.past_from IS NULL AND (
            SELECT b.pipeline = k.pipeline AND b.committed_at IS NOT NULL FROM onceover.batch b
            WHERE b.batch_id = r.batch_id)
          ORDER BY r.end_offset DESC LIMIT 1)) AS committed
        FROM onceover.kafka_partition k WHERE k.pipeline = %s AND k.generation = %s
        """,
        [pipeline, generation],
    )
    return {row["kafka_partition"]: row["committed"] for row in rows}


def list_generations(connection: Connection, pipeline: str) -> list[str]:
    """Return the generations of its topic that the pipeline has read from."""
    rows = connection.execute(
        "SELECT DISTINCT generation FROM onceover.kafka_partition WHERE pipeline = %s ORDER BY 1", [pipeline]
    )
    return [row["generation"] for row in rows]


def advance(connection: Connection, pipeline: str, settled: Sequence[OffsetRange]) -> None:
    """Advance reach to the end of these ranges of one Kafka partition, landed or accepted as lost, and the frontier
    over every settled range that now joins it; event times count only up to the frontier."""
    source, end = settled[0].source, max(piece.end for piece in settled)
    key = {"pipeline": pipeline, "generation": source.generation, "partition": source.kafka_partition}
    row = connection.execute(
        """
        UPDATE onceover.kafka_partition SET reach = greatest(reach, %(end)s)
        WHERE pipeline = %(pipeline)s AND generation = %(generation)s AND kafka_partition = %(partition)s
        RETURNING frontier
        """,
        {**key, "end": end},
    ).fetchone()
    # Beyond a hole nothing joins, and nothing is looked up: a hole that stays for months costs no landing time.
    if row and any(piece.start <= row["frontier"] < piece.end for piece in settled):
        connection.execute(
            f"""
            WITH ahead AS (
              SELECT s.start_offset, s.end_offset, s.max_event_time FROM ({_SETTLED}) s
              WHERE s.generation = %(generation)s AND s.kafka_partition = %(partition)s
                AND s.end_offset > %(frontier)s AND s.read_end > %(frontier)s
            ), joined AS (
              SELECT upper(whole) AS frontier, (
                SELECT max(a.max_event_time) FROM ahead a WHERE a.start_offset < upper(whole)) AS max_event_time
              FROM (SELECT unnest(range_agg(int8range(start_offset, end_offset))) AS whole FROM ahead) ranges
              WHERE whole @> %(frontier)s::bigint)
            UPDATE onceover.kafka_partition k SET frontier = j.frontier,
              max_event_time = greatest(k.max_event_time, j.max_event_time),
              caught_up_since = CASE WHEN j.max_event_time IS NULL THEN k.caught_up_since END
            FROM joined j
            WHERE k.pipeline = %(pipeline)s AND k.generation = %(generation)s AND k.kafka_partition = %(partition)s
            """,
            {**key, "frontier": row["frontier"]},
        )


def advance_watermark(
    connection: Connection,
    epoch: Epoch,
    generation: str,
    allowed_lateness: timedelta,
    idle_after: timedelta,
    seen_ago: timedelta = timedelta(0),
) -> tuple[datetime | None, bool]:
    """Advance the watermark, which never moves back. Returns the watermark, and whether every window is closed.

    A hole holds the watermark back, in an earlier generation too: the event times of missing records are unknown. The
    ends of the logs were read `seen_ago`: a Kafka partition is known to have been quiet until then, and no longer; one
    with records behind an open transaction is not quiet. One without event times is quiet too: tombstones and
    quarantined records close no window, and hold none open.
    """
    with connection.transaction():
        require_epoch(connection, epoch)
        rows = connection.execute(
            """
            SELECT kafka_partition, max_event_time,
              CASE WHEN frontier >= greatest(reach, end_offset, high_watermark)
                THEN clock_timestamp() - %s - caught_up_since END AS caught_up_for
            FROM onceover.kafka_partition WHERE pipeline = %s AND (generation = %s OR frontier < reach)
            """,
            [seen_ago, epoch.pipeline, generation],
        ).fetchall()
        progress = [PartitionProgress(row["max_event_time"], row["caught_up_for"]) for row in rows]
        moment, every_window_closed = compute_watermark(progress, allowed_lateness, idle_after)
        furthest = max((each.max_event_time for each in progress if each.max_event_time), default=None)
        row = connection.execute(
            """
            UPDATE onceover.pipeline SET watermark = greatest(watermark, %(moment)s), every_window_closed = %(closed)s,
              held_since = CASE WHEN %(closed)s OR %(moment)s > coalesce(watermark, '-infinity')
                  OR coalesce(%(furthest)s <= greatest(watermark, %(moment)s), %(furthest)s IS NULL) THEN NULL
                ELSE coalesce(held_since, clock_timestamp()) END
            WHERE name = %(name)s RETURNING watermark
            """,
            {
                "moment": moment,
                "closed": every_window_closed,
                "furthest": furthest and furthest - allowed_lateness,
                "name": epoch.pipeline,
            },
        ).fetchone()
    return (row["watermark"] if row else None), every_window_closed
