"""Snapshot of every pipeline's signals in the ledger, read in time that a year of windows allows.

Landed records are read from running totals, and certified and expired windows are counted by indices alone; of each
other window only the last landing is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.drivers import STATE_OF_DRIVER
from onceover.ledger.landings import count_skipped
from onceover.ledger.windows import STATE, UNSETTLED, WindowState, count_by_state
from onceover.ledger.writer_schemas import count_schemas
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason

SCRAPE_SECONDS = 8
"""Limit of one statement: Prometheus gives up after 10 s, and an abandoned scrape must not go on."""


class DriverState(StrEnum):
    """The state of a pipeline's driver. A driver stopped on request ends its epoch; one that died does not."""

    ALIVE = "alive"
    STOPPED = "stopped"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class KafkaPartitionProgress:
    """A Kafka partition over all generations of its topic. `lag` is in offsets, as the driver last saw the log; no
    unread record is older than `unread_since`, None if there is none, or if its age is unknown. Of the lag an open
    transaction hides `hidden` offsets from `first_hidden` on, `hidden_since` then."""

    landed: int
    quarantined: int
    lag: int
    largest_event_time: datetime | None
    unread_since: datetime | None = None
    hidden: int = 0
    first_hidden: int | None = None
    hidden_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of a pipeline. `overdue` counts windows, `holes` offsets, `too_many` and `too_few` the records by which
    aggregates were wrong before their repair, `skipped` by measure the records of the last day that it skipped,
    `schemas` those of values by whether the contract reads them. The loop worked at `progress_at`; the watermark has
    been held since `held_since`. `log_retention` is in seconds, None if Kafka's log lasts for ever; `log_until` is in
    Unix seconds, None also if every closed window is certified. Of the last submitted batch that landed,
    `scheduling_delay` and `processing` are in seconds."""

    pipeline: str
    driver: DriverState
    progress_at: datetime | None
    watermark: datetime | None
    held_since: datetime | None
    landed: int
    superseded: int
    kafka_partitions: Mapping[int, KafkaPartitionProgress]
    windows: Mapping[WindowState, int]
    overdue: int
    log_retention: float | None
    log_until: float | None
    findings: Mapping[Kind, int]
    holes: Mapping[Reason, int]
    too_many: int
    too_few: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    schemas: Mapping[bool, int] = field(default_factory=dict)
    scheduling_delay: float | None = None
    processing: float | None = None
    landed_at: datetime | None = None


def read_signals(connection: Connection, overdue_after: timedelta) -> tuple[Signals, ...]:
    """Return the signals of all pipelines that ever ran, by name.

    A window is overdue if it is closed and neither certified nor blocked, the watermark has been `overdue_after` beyond
    its end or the whole topic is idle, and nothing has landed in it for as long: by event time and by the database's
    clock, so that neither a replayed topic nor an idle one makes windows overdue at once.
    """
    with in_snapshot(connection):
        connection.execute(f"SET LOCAL statement_timeout = '{SCRAPE_SECONDS}s'")
        rows = connection.execute(_PIPELINES).fetchall()
        return tuple(_read_pipeline(connection, row, overdue_after) for row in rows)


# OFFSET 0: the last batch is looked up by its key, one pipeline after the other.
_PIPELINES = f"""
SELECT p.name, p.watermark, p.held_since, d.progress_at, p.batches_landed,
  extract(epoch FROM p.log_retention)::float8 AS log_retention,
  (SELECT count(*) FROM onceover.batch b WHERE b.pipeline = p.name AND b.state = 'superseded') AS superseded,
  {STATE_OF_DRIVER} AS driver,
  b.scheduling_delay_ms / 1000.0::float8 AS scheduling_delay,
  extract(epoch FROM b.landed_at - b.begun_at)::float8 AS processing, b.landed_at
FROM onceover.pipeline p LEFT JOIN onceover.driver d ON d.pipeline = p.name AND d.superseded_at IS NULL
LEFT JOIN LATERAL (SELECT * FROM onceover.batch WHERE batch_id = p.last_batch OFFSET 0) b ON true
ORDER BY p.name
"""

# Unread offsets of earlier generations are not lag: they can never be read, and are a hole.
_KAFKA_PARTITIONS = """
SELECT kafka_partition, sum(records_landed)::bigint AS landed, sum(records_quarantined)::bigint AS quarantined,
  sum(greatest(end_offset - reach, high_watermark - reach, 0))::bigint AS lag,
  max(max_event_time) AS largest_event_time,
  min(read_until) FILTER (WHERE greatest(end_offset, high_watermark) > reach) AS unread_since,
  min(end_offset) FILTER (WHERE hidden_since IS NOT NULL) AS first_hidden,
  coalesce(sum(high_watermark - end_offset) FILTER (WHERE hidden_since IS NOT NULL), 0)::bigint AS hidden,
  min(hidden_since) AS hidden_since
FROM onceover.kafka_partition WHERE pipeline = %s GROUP BY 1 ORDER BY 1
"""

# A window's landings are numbered as they landed, so its last one tells how long it has been quiet.
_OVERDUE = f"""
SELECT count(*) AS overdue FROM (
  SELECT w.window_start, {STATE} AS state
  FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
  WHERE w.pipeline = %(pipeline)s AND w.window_start IN ({UNSETTLED})
    AND (p.every_window_closed OR w.window_end <= p.watermark - %(after)s::interval)) long_closed
WHERE state IN ('closed', 'failed', 'repairing') AND coalesce((
  SELECT (SELECT b.landed_at FROM onceover.batch b WHERE b.batch_id = l.batch_id) FROM onceover.landing l
  WHERE l.pipeline = %(pipeline)s AND l.window_start = long_closed.window_start
  ORDER BY l.landing_id DESC LIMIT 1) < clock_timestamp() - %(after)s::interval, true)
"""

_OLDEST_RECORD = """
SELECT extract(epoch FROM min(oldest_record))::float8 AS oldest FROM onceover."window"
WHERE pipeline = %s AND NOT is_certified AND expired_at IS NULL
"""

_FINDINGS = """
SELECT kind, count(*) AS found FROM onceover.finding WHERE pipeline = %s AND resolved_at IS NULL GROUP BY 1
"""

_HOLES = """
SELECT gap ->> 'reason' AS reason,
  sum((gap #>> '{offsets,3}')::bigint - (gap #>> '{offsets,2}')::bigint)::bigint AS missing
FROM onceover.finding, jsonb_array_elements(evidence -> 'gaps') gap
WHERE pipeline = %s AND window_start IS NULL AND kind = %s AND resolved_at IS NULL GROUP BY 1
"""

_REPAIRED = """
SELECT coalesce(sum(overcount) FILTER (WHERE overcount > 0), 0)::bigint AS too_many,
  coalesce(-sum(overcount) FILTER (WHERE overcount < 0), 0)::bigint AS too_few
FROM onceover.repair WHERE pipeline = %s AND overcount <> 0 AND state <> 'restored'
"""


def _read_pipeline(connection: Connection, row: Mapping[str, Any], overdue_after: timedelta) -> Signals:
    name: str = row["name"]
    overdue = connection.execute(_OVERDUE, {"pipeline": name, "after": overdue_after}).fetchall()[0]
    repaired = connection.execute(_REPAIRED, [name]).fetchall()[0]
    return Signals(
        pipeline=name,
        driver=DriverState(row["driver"]),
        progress_at=row["progress_at"],
        watermark=row["watermark"],
        held_since=row["held_since"],
        landed=row["batches_landed"],
        superseded=row["superseded"],
        kafka_partitions={
            each.pop("kafka_partition"): KafkaPartitionProgress(**each)
            for each in connection.execute(_KAFKA_PARTITIONS, [name])
        },
        windows=count_by_state(connection, name),
        overdue=overdue["overdue"],
        log_retention=row["log_retention"],
        log_until=_compute_log_until(connection, name, row["log_retention"]),
        findings={Kind(each["kind"]): each["found"] for each in connection.execute(_FINDINGS, [name])},
        holes={Reason(each["reason"]): each["missing"] for each in connection.execute(_HOLES, [name, Kind.HOLE])},
        too_many=repaired["too_many"],
        too_few=repaired["too_few"],
        skipped=count_skipped(connection, name),
        schemas=count_schemas(connection, name),
        scheduling_delay=row["scheduling_delay"],
        processing=row["processing"],
        landed_at=row["landed_at"],
    )


def _compute_log_until(connection: Connection, name: str, log_retention: float | None) -> float | None:
    """Return until when Kafka holds every record of the uncertified windows."""
    if log_retention is None:
        return None
    row = connection.execute(_OLDEST_RECORD, [name]).fetchone()
    return row["oldest"] + log_retention if row and row["oldest"] is not None else None
