"""What ingest has seen of a topic's log: what open transactions hide, and how long the log lasts."""

from __future__ import annotations

from onceover.kafka.topic import TopicFacts
from onceover.ledger.database import Connection
from onceover.model.hidden_offsets import HiddenOffsets


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
