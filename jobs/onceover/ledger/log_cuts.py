"""Logs that were cut and have grown again: the leader epochs of landed offsets, and the reading that starts over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from onceover.errors import BusyError
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.locks import lock_rows, require_locked
from onceover.ledger.windows import bump_versions
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class ComparedLog:
    """What the ledger knows of one log: how far its records landed, the leader epoch at which they were compared with
    it, and the first offset that has another record now."""

    reach: int
    compared_epoch: int | None
    diverged_from: int | None


def read_compared_logs(connection: Connection, pipeline: str, generation: str) -> Mapping[KafkaPartition, ComparedLog]:
    """Return what is known of each Kafka partition's log."""
    rows = connection.execute(
        "SELECT kafka_partition, reach, compared_epoch, diverged_from FROM onceover.kafka_partition "
        "WHERE pipeline = %s AND generation = %s",
        [pipeline, generation],
    )
    return {
        KafkaPartition(generation, r["kafka_partition"]): ComparedLog(
            r["reach"], r["compared_epoch"], r["diverged_from"]
        )
        for r in rows
    }


def list_landed_epochs(connection: Connection, pipeline: str, log: OffsetRange) -> list[EpochSpan]:
    """Return the offsets of landed batches within the log by the leader epoch of their records; the newest first."""
    rows = connection.execute(
        """
        SELECT epoch, lower(span) AS start_offset, upper(span) AS end_offset FROM (
          SELECT epoch, unnest(range_agg(int8range(first, next))) AS span FROM (
            SELECT (e.value->>0)::int AS epoch, (e.value->>1)::bigint AS first,
              coalesce((lead(e.value->>1) OVER (PARTITION BY r.batch_id, r.start_offset ORDER BY e.ordinality))::bigint,
                r.end_offset) AS next
            FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id),
              jsonb_array_elements(r.leader_epochs) WITH ORDINALITY e
            WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.generation = %(generation)s
              AND r.kafka_partition = %(partition)s AND r.end_offset > %(start)s
          ) firsts GROUP BY epoch
        ) spans ORDER BY epoch DESC, 2
        """,
        {
            "pipeline": pipeline,
            "generation": log.source.generation,
            "partition": log.source.kafka_partition,
            "start": log.start,
        },
    )
    return [EpochSpan(OffsetRange(log.source, r["start_offset"], r["end_offset"]), r["epoch"]) for r in rows]


def record_comparison(
    connection: Connection,
    pipeline: str,
    source: KafkaPartition,
    diverged_from: int | None,
    compared_epoch: int | None,
    driver: Epoch | None,
) -> list[datetime]:
    """Record where the log has another record than landed, and reopen the windows that hold records from there on, in
    one transaction; return those windows. `compared_epoch` is None while the comparison has to be made again.

    The caller is the driver, or there is none: raises FencedError for a lost epoch, BusyError if one runs.
    """
    key = [pipeline, source.generation, source.kafka_partition]
    with connection.transaction():
        if driver is not None:
            require_epoch(connection, driver)
        elif (
            row := connection.execute(  # locked whether or not it has expired: a driver that starts waits here
                "SELECT expires_at >= clock_timestamp() AS lives FROM onceover.driver WHERE pipeline = %s FOR UPDATE",
                [pipeline],
            ).fetchone()
        ) and row["lives"]:
            raise BusyError(f"ingest of {pipeline} runs: it compares the log itself")
        windows = [] if diverged_from is None else _list_windows(connection, pipeline, source, diverged_from)
        locked = lock_rows(connection, pipeline, windows, [source])
        before = connection.execute(
            "SELECT diverged_from FROM onceover.kafka_partition "
            "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            key,
        ).fetchone()
        known = before["diverged_from"] if before else None
        connection.execute(
            "UPDATE onceover.kafka_partition SET diverged_from = %s, compared_epoch = %s "
            "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            [diverged_from, compared_epoch, *key],
        )
        if diverged_from is None or known == diverged_from:
            return []
        windows = _list_windows(connection, pipeline, source, diverged_from)
        require_locked(pipeline, locked, windows)
        bump_versions(connection, pipeline, windows)
        return windows


def _list_windows(connection: Connection, pipeline: str, source: KafkaPartition, start: int) -> list[datetime]:
    rows = connection.execute(
        """
        SELECT DISTINCT l.window_start FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        WHERE l.pipeline = %(pipeline)s AND l.window_start IS NOT NULL AND p.generation = %(generation)s
          AND p.kafka_partition = %(partition)s AND l.batch_id IN (
            SELECT batch_id FROM onceover.batch_range WHERE generation = %(generation)s
              AND kafka_partition = %(partition)s AND end_offset > %(start)s
            UNION ALL
            SELECT batch_id FROM onceover.exact_range WHERE generation = %(generation)s
              AND kafka_partition = %(partition)s AND end_offset > %(start)s)
        ORDER BY 1
        """,
        {
            "pipeline": pipeline,
            "generation": source.generation,
            "partition": source.kafka_partition,
            "start": start,
        },
    ).fetchall()
    return [row["window_start"] for row in rows]
