"""Evidence of the ledger about windows, in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onceover.ledger.batches import list_in_flight
from onceover.ledger.columns import read_count, read_digest
from onceover.ledger.compactions import FROZEN, parse_compacted
from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.log_limits import list_stopped
from onceover.ledger.restatements import RESTATED
from onceover.ledger.windows import WITHIN, count_open_windows
from onceover.model.digest import EMPTY
from onceover.model.finding import Evidence, Finding
from onceover.model.finding_kinds import Kind
from onceover.model.stopped_range import StopCause


@dataclass(frozen=True, slots=True)
class EvidenceSnapshot:
    """One consistent view: evidence of each closed window that is not certified, or of all closed ones on request."""

    evidence: tuple[Evidence, ...]
    in_flight: frozenset[int]
    findings: tuple[Finding, ...]  # of the pipeline
    blocked: frozenset[datetime]
    claimed: frozenset[datetime]
    open_windows: int


_CHOSEN = f"""
  FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL
    AND coalesce(p.every_window_closed OR w.window_end <= p.watermark, false) <> %(open)s AND {WITHIN}"""

# Selects windows by start, not by the condition of _CHOSEN: the planner cannot know how few of a year's windows are
# uncertified, and would read every landing.
_EVIDENCE = f"""
WITH chosen AS (
  SELECT w.*, w.claimed_until >= clock_timestamp() AS is_claimed, c.version AS certificate_version,
    coalesce(c.last_landing, 0) AS last_landing,
    coalesce({FROZEN}, 0) AS frozen_length,
    c.records AS c_records, c.high1 AS c_high1, c.low1 AS c_low1, c.high2 AS c_high2, c.low2 AS c_low2,
    coalesce(c.extras <> '[]', false) AS has_extras, {RESTATED} AS restated_under
  FROM onceover."window" w LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
  WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(starts)s)
), landed AS (
  SELECT l.*, l.landing_id > c.last_landing AS since,
    l.byte_start >= c.frozen_length AND coalesce(l.landing_id > c.removed_to_landing, true) AS beyond
  FROM chosen c JOIN onceover.landing l ON l.window_start = c.window_start
  WHERE l.pipeline = %(pipeline)s
), sums AS (
  SELECT window_start, array_agg(landing_id ORDER BY landing_id) AS landing_ids,
    coalesce(array_agg(landing_id ORDER BY landing_id) FILTER (WHERE since), '{{}}') AS landings_since,
    coalesce(sum(byte_end - byte_start) FILTER (WHERE since AND beyond), 0)::bigint AS bytes_since,
    coalesce(sum(records) FILTER (WHERE since), 0)::bigint AS s_records,
    coalesce(sum(high1) FILTER (WHERE since), 0)::bigint AS s_high1,
    coalesce(sum(low1) FILTER (WHERE since), 0)::bigint AS s_low1,
    coalesce(sum(high2) FILTER (WHERE since), 0)::bigint AS s_high2,
    coalesce(sum(low2) FILTER (WHERE since), 0)::bigint AS s_low2,
    coalesce(sum(records) FILTER (WHERE since AND late), 0)::bigint AS late_records,
    coalesce(array_agg(landing_id ORDER BY landing_id) FILTER (WHERE since AND NOT proved), '{{}}') AS unproved
  FROM landed GROUP BY window_start
), spans AS (
  SELECT l.window_start, l.landing_id, l.since, r.generation, r.kafka_partition, r.start_offset, r.end_offset
  FROM landed l JOIN onceover.landing_part p USING (landing_id) CROSS JOIN LATERAL (
    -- OFFSET 0: looked up by the batch's key, one landing after the other; else the planner reads every range.
    SELECT * FROM onceover.batch_range a
    WHERE a.batch_id = l.batch_id AND a.generation = p.generation AND a.kafka_partition = p.kafka_partition
    OFFSET 0) r
), preceded AS (
  -- In the order of their starts, a span overlaps an earlier one exactly if it begins before the largest end so far.
  SELECT *, max(ARRAY[end_offset, landing_id]) OVER earlier AS any_before,
    max(ARRAY[end_offset, landing_id]) FILTER (WHERE since) OVER earlier AS since_before
  FROM spans WINDOW earlier AS (PARTITION BY window_start, generation, kafka_partition
    ORDER BY start_offset, landing_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), released AS (
  -- Releases whose IDs have had the contract of the release from the first, as after a rebuild of the ledger that found
  -- no line of an earlier contract: whatever reads them again lands them in windows, not in quarantine.
  SELECT l.window_start, l.landing_id, l.since, x.* FROM landed l JOIN onceover.batch b USING (batch_id)
  CROSS JOIN LATERAL (
    SELECT generation, kafka_partition, min(start_offset) AS start_offset, max(end_offset) AS end_offset
    FROM onceover.released x WHERE x.batch_id = l.batch_id GROUP BY 1, 2 OFFSET 0) x
  WHERE b.pipeline = %(pipeline)s AND b.who IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM onceover.contract c, jsonb_array_elements(c.cutovers) first
    WHERE c.pipeline = b.pipeline AND c.version <= b.contract_version AND first ->> 0 = x.generation
      AND (first ->> 1)::integer = x.kafka_partition AND (first ->> 2)::bigint >= x.end_offset)
), overlapping AS (
  SELECT r.window_start, unnest(ARRAY[r.landing_id, s.landing_id]) AS landing_id
  FROM released r JOIN spans s ON s.window_start = r.window_start AND s.generation = r.generation
    AND s.kafka_partition = r.kafka_partition AND s.start_offset < r.end_offset AND r.start_offset < s.end_offset
  WHERE r.since OR s.since
  UNION
  SELECT window_start, unnest(ARRAY[landing_id, other[2]]) AS landing_id
  FROM (SELECT *, CASE WHEN since THEN any_before ELSE since_before END AS other FROM preceded) p
  WHERE start_offset < other[1]
), doubled AS (
  SELECT window_start, array_agg(landing_id ORDER BY landing_id) AS overlapping FROM overlapping GROUP BY 1
)
SELECT c.*, coalesce(s.landing_ids, '{{}}') AS landing_ids, coalesce(s.landings_since, '{{}}') AS landings_since,
  coalesce(s.bytes_since, 0) AS bytes_since, s.s_records, s.s_high1, s.s_low1, s.s_high2, s.s_low2,
  coalesce(s.late_records, 0) AS late_records, coalesce(s.unproved, '{{}}') AS unproved,
  coalesce(o.overlapping, '{{}}') AS overlapping
FROM chosen c LEFT JOIN sums s USING (window_start) LEFT JOIN doubled o USING (window_start)
ORDER BY c.window_start
"""


def read_versions(
    connection: Connection,
    pipeline: str,
    start: datetime | None,
    end: datetime | None,
    every: bool,
    *,
    open_ones: bool = False,
) -> dict[datetime, int]:
    """Return the version of each window that `read_evidence` would read with these arguments, in order: a window whose
    version differs in the evidence changed in between."""
    uncertified = "" if every else "AND NOT w.is_certified"  # no parameter: then an index has only these
    rows = connection.execute(
        f"SELECT w.window_start, w.version {_CHOSEN} {uncertified} ORDER BY w.window_start",
        {"pipeline": pipeline, "start": start, "end": end, "open": open_ones},
    )
    return {row["window_start"]: row["version"] for row in rows}


def read_evidence(
    connection: Connection,
    pipeline: str,
    start: datetime | None,
    end: datetime | None,
    every: bool,
    *,
    open_ones: bool = False,
) -> EvidenceSnapshot:
    """Read the evidence of closed windows, or of `open_ones`, in one repeatable-read transaction; `every` includes
    windows whose certificate is valid."""
    with in_snapshot(connection):
        starts = list(read_versions(connection, pipeline, start, end, every, open_ones=open_ones))
        rows = connection.execute(_EVIDENCE, {"pipeline": pipeline, "starts": starts}).fetchall()
        return EvidenceSnapshot(
            evidence=tuple(_build_evidence(row) for row in rows),
            in_flight=list_in_flight(connection, pipeline),
            findings=find_incomplete_partitions(connection, pipeline),
            blocked=frozenset(row["window_start"] for row in rows if row["blocked_at"]),
            claimed=frozenset(row["window_start"] for row in rows if row["is_claimed"]),
            open_windows=count_open_windows(connection, pipeline),
        )


def _build_evidence(row: Mapping[str, Any]) -> Evidence:
    return Evidence(
        window_start=row["window_start"],
        window_end=row["window_end"],
        version=row["version"],
        control=read_count(row),
        certified=None if row["certificate_version"] is None else read_digest(row, "c_"),
        certificate_version=row["certificate_version"],
        frozen_length=row["frozen_length"],
        landed_since=read_digest(row, "s_") if row["s_records"] is not None else EMPTY,
        bytes_since=row["bytes_since"],
        landings_since=tuple(row["landings_since"]),
        late_records=row["late_records"],
        overlaps=tuple(row["overlapping"]),
        unproved=tuple(row["unproved"]),
        landing_set=tuple(row["landing_ids"]),
        has_extras=row["has_extras"],
        restated=row["restated_under"],
        compacted=parse_compacted(row),
    )


def find_incomplete_partitions(connection: Connection, pipeline: str) -> tuple[Finding, ...]:
    """Return what is wrong with the pipeline's Kafka partitions, whatever the window."""
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, frontier, reach, end_offset, truncated_from,
          CASE WHEN reach <= cut_from THEN cut_from END AS cut_from
        FROM onceover.kafka_partition WHERE pipeline = %s
          AND (frontier < reach OR truncated_from IS NOT NULL OR reach <= cut_from)
        ORDER BY generation, kafka_partition
        """,
        [pipeline],
    ).fetchall()
    at = ("generation", "kafka_partition")
    behind = [[r[c] for c in (*at, "frontier", "reach")] for r in rows if r["frontier"] < r["reach"]]
    ends = [[r[c] for c in (*at, "end_offset", "truncated_from")] for r in rows if r["truncated_from"] is not None]
    cut = [[r[c] for c in (*at, "cut_from")] for r in rows if r["cut_from"] is not None]
    stopped = [
        {"offsets": [o.source.generation, o.source.kafka_partition, o.start, o.end], "why": each.why}
        for each in list_stopped(connection, pipeline, StopCause.UNREADABLE)
        for o in [each.offsets]
    ]
    return (
        *([Finding(Kind.UNREADABLE, {"stopped": stopped})] if stopped else []),
        *([Finding(Kind.HOLE, {"frontier_and_reach": behind})] if behind else []),
        *([Finding(Kind.TRUNCATED, {"end_and_stored": ends, "cut_from": cut})] if ends or cut else []),
    )
