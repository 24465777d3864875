"""How far and how long a topic's log can be read: where Kafka partitions are stopped, at most at one range for each
cause, which offsets no reader gets, what open transactions hide, and the log's retention."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from onceover.kafka.topic import TopicFacts
from onceover.ledger.catalog import record_poison
from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.model.hidden_offsets import HiddenOffsets
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.poison import PoisonRecord
from onceover.model.stopped_range import StopCause, StoppedRange

RETRY: Final = timedelta(minutes=10)
"""Until offsets that no reader got are read again: a batch that decompresses to gigabytes costs seconds each time."""
_KEY: Final = "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s"


def list_stopped(connection: Connection, pipeline: str, cause: StopCause) -> list[StoppedRange]:
    """Return the ranges before which the pipeline's Kafka partitions are stopped for this cause, in order."""
    rows = connection.execute(
        f"""
        SELECT generation, kafka_partition, lower({cause}) AS start_offset, upper({cause}) AS end_offset,
          {cause}_why AS why, {cause}_at + %s < clock_timestamp() AS is_due
        FROM onceover.kafka_partition WHERE pipeline = %s AND {cause} IS NOT NULL ORDER BY 1, 2
        """,
        [RETRY, pipeline],
    )
    return [StoppedRange(read_range(r), r["why"], r["is_due"]) for r in rows]


def record_stopped(connection: Connection, epoch: Epoch, cause: StopCause, found: Iterable[StoppedRange]) -> None:
    """Record before which ranges Kafka partitions are stopped from now on, or still: a later range of a Kafka partition
    takes the place of an earlier one of the same cause. Raises FencedError for a lost epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.cursor().executemany(
            f"UPDATE onceover.kafka_partition SET {cause} = int8range(%s, %s), {cause}_why = %s, "
            f"{cause}_at = clock_timestamp() {_KEY}",
            [
                (at.start, at.end, each.why, epoch.pipeline, at.source.generation, at.source.kafka_partition)
                for each in sorted(found, key=lambda each: each.offsets)
                for at in [each.offsets]
            ],
        )


def end_stopped(connection: Connection, pipeline: str, cause: StopCause, source: KafkaPartition) -> None:
    """Record that the Kafka partition is no longer stopped for this cause."""
    connection.execute(
        f"UPDATE onceover.kafka_partition SET {cause} = NULL, {cause}_why = NULL, {cause}_at = NULL {_KEY}",
        [pipeline, source.generation, source.kafka_partition],
    )


def end_suspect(
    connection: Connection, epoch: Epoch, source: KafkaPartition, found: Iterable[PoisonRecord] = ()
) -> None:
    """Record what the search in that Kafka partition has found, and that it is over. Raises FencedError for a lost
    epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        record_poison(connection, epoch.pipeline, found)
        end_stopped(connection, epoch.pipeline, StopCause.SUSPECT, source)


def list_unreadable(connection: Connection, pipeline: str, generation: str) -> list[OffsetRange]:
    """Return the offsets of this generation that were accepted as unreadable, and that no batch has read since."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.accepted_loss "
        "WHERE pipeline = %s AND generation = %s AND kind = 'unreadable' AND relanded_at IS NULL ORDER BY 2, 3",
        [pipeline, generation],
    )
    return list(map(read_range, rows))


def list_known_unreadable(connection: Connection, pipeline: str, generation: str) -> tuple[OffsetRange, ...]:
    """Return the offsets of this generation that no reader gets: those accepted as such, and those before which ingest
    is stopped."""
    stopped = [each.offsets for each in list_stopped(connection, pipeline, StopCause.UNREADABLE)]
    return coalesce(
        [
            *list_unreadable(connection, pipeline, generation),
            *(each for each in stopped if each.source.generation == generation),
        ]
    )


def list_hidden(connection: Connection, pipeline: str, generation: str) -> list[HiddenOffsets]:
    """Return the hidden offsets of each Kafka partition of that generation that has some, in order."""
    rows = connection.execute(
        """
        SELECT kafka_partition, end_offset AS first, high_watermark - end_offset AS count, hidden_since AS since
        FROM onceover.kafka_partition
        WHERE pipeline = %s AND generation = %s AND high_watermark > end_offset ORDER BY kafka_partition
        """,
        [pipeline, generation],
    )
    return [HiddenOffsets(**row) for row in rows]


SAMPLED_BATCHES = 20
"""Batches from which the size of a record is taken."""


def estimate_retention(connection: Connection, pipeline: str, retention_bytes: int, facts: TopicFacts) -> float | None:
    """Return after how many seconds a Kafka partition of the topic has grown by `retention_bytes`, the fastest one's;
    None until something has landed of it.

    The oldest record that landed and that the log still holds has an age, by its Kafka timestamp, and so many bytes
    since: the log lasts so much longer as it may grow larger. Bytes are those of raw, which Kafka mostly packs: rather
    too early than too late, but never shorter than that record is kept already.
    """
    partitions = sorted(facts.earliest)
    row = connection.execute(
        """
        WITH sampled AS (
          SELECT sum(l.byte_end - l.byte_start)::float8 / nullif(sum(l.records), 0) AS bytes FROM (
            SELECT batch_id FROM onceover.batch WHERE pipeline = %(pipeline)s AND state = 'landed'
            ORDER BY batch_id DESC LIMIT %(sampled)s) b JOIN onceover.landing l USING (batch_id))
        SELECT min(oldest.age * %(most)s / least(sampled.bytes * (log.last - oldest.at), %(most)s)) AS seconds
        FROM sampled, unnest(%(partitions)s::int[], %(first)s::bigint[], %(last)s::bigint[])
          AS log(kafka_partition, first, last) CROSS JOIN LATERAL (
            SELECT greatest(r.start_offset, log.first) AS at,
              extract(epoch FROM clock_timestamp() - r.oldest_record)::float8 AS age
            FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
            WHERE r.generation = %(generation)s AND r.kafka_partition = log.kafka_partition
              AND r.end_offset > log.first AND r.oldest_record IS NOT NULL
              AND b.pipeline = %(pipeline)s AND b.state = 'landed'
            ORDER BY r.end_offset LIMIT 1) oldest
        WHERE log.last > oldest.at AND sampled.bytes > 0 AND oldest.age > 0
        """,
        {
            "pipeline": pipeline,
            "sampled": SAMPLED_BATCHES,
            "most": float(max(1, retention_bytes)),
            "generation": facts.generation,
            "partitions": partitions,
            "first": [facts.earliest[p] for p in partitions],
            "last": [facts.log_end(p) for p in partitions],
        },
    ).fetchone()
    return row["seconds"] if row else None


def read_log_retention(connection: Connection, pipeline: str) -> float | None:
    """Return for how many seconds the topic keeps records, as ingest noted; None for ever, or unknown."""
    row = connection.execute(
        "SELECT extract(epoch FROM log_retention)::float8 AS seconds FROM onceover.pipeline WHERE name = %s", [pipeline]
    ).fetchone()
    return row["seconds"] if row else None
