"""The ledger's part of audits: requests, results, and the facts to audit by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.ledger.compactions import COMPACTED_COLUMNS, parse_compacted
from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import read_count
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile


@dataclass(frozen=True, slots=True)
class Audit:
    """A requested audit. Kind `window` verifies one window's certificate, kind `log` compares a range of windows, or
    all windows, with Kafka's log."""

    audit_id: int
    pipeline: str
    kind: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class AuditedWindow:
    """A window as the ledger has it now: `control` is the digest of its aggregates (None: unknown), `certified` whether
    its certificate is valid."""

    window_start: datetime
    version: int
    control: Digest | None
    certified: bool
    is_open: bool
    compacted: CompactedFile | None


def record_request(
    connection: Connection, pipeline: str, kind: str, start: datetime | None, end: datetime | None, who: str
) -> int:
    """Record a request for an audit; return the audit's id."""
    row = connection.execute(
        "INSERT INTO onceover.audit (pipeline, kind, window_start, window_end, who) VALUES (%s, %s, %s, %s, %s) "
        "RETURNING audit_id",
        [pipeline, kind, start, end, who],
    ).fetchone()
    return int(row["audit_id"]) if row else 0


def read_audit(connection: Connection, pipeline: str, audit_id: int) -> tuple[Audit, Mapping[str, Any] | None]:
    """Return an audit, and its result (None: not finished). Raises UsageError for an unknown audit."""
    row = connection.execute(
        "SELECT kind, window_start, window_end, result FROM onceover.audit WHERE audit_id = %s AND pipeline = %s",
        [audit_id, pipeline],
    ).fetchone()
    if row is None:
        raise UsageError(f"pipeline {pipeline} has no audit {audit_id}; request one with `onceover audit {pipeline}`")
    return Audit(audit_id, pipeline, row["kind"], row["window_start"], row["window_end"]), row["result"]


def record_result(connection: Connection, audit_id: int, result: Mapping[str, Any]) -> None:
    """Record the result of an audit; an audit that runs again replaces it."""
    connection.execute(
        "UPDATE onceover.audit SET result = %s, finished_at = clock_timestamp() WHERE audit_id = %s",
        [Jsonb(result), audit_id],
    )


def read_windows(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> dict[datetime, AuditedWindow]:
    """Return the windows from `start` to before `end` (None: unbounded)."""
    rows = connection.execute(
        f"""
        SELECT w.*, coalesce(c.version = w.version, false) AS certified,
          NOT (p.every_window_closed OR coalesce(w.window_end <= p.watermark, false)) AS is_open,
          {COMPACTED_COLUMNS}
        FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
        LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        LEFT JOIN onceover.compaction k ON k.compaction_id = w.compaction_id
        WHERE w.pipeline = %(pipeline)s AND (%(start)s::timestamptz IS NULL OR w.window_start >= %(start)s)
          AND (%(end)s::timestamptz IS NULL OR w.window_start < %(end)s)
        ORDER BY w.window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return {
        row["window_start"]: AuditedWindow(
            row["window_start"],
            row["version"],
            read_count(row),
            row["certified"],
            row["is_open"],
            parse_compacted(row),
        )
        for row in rows
    }


def read_offset_bounds(
    connection: Connection, pipeline: str, generation: str, start: datetime | None, end: datetime | None
) -> dict[int, tuple[int, int]]:
    """Return by Kafka partition of the generation the first offset to compare, and the one after the last: of all that
    was read, or of the batches that landed in the range of windows."""
    rows = connection.execute(
        """
        SELECT kafka_partition, min(start_offset) AS start_offset, max(end_offset) AS end_offset FROM (
          SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range
          UNION ALL SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.exact_range) r
        JOIN onceover.batch b USING (batch_id)
        WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.generation = %(generation)s
          AND (%(start)s::timestamptz IS NULL OR EXISTS (
            SELECT 1 FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
            WHERE l.batch_id = b.batch_id AND l.window_start >= %(start)s AND l.window_start < %(end)s
              AND p.generation = r.generation AND p.kafka_partition = r.kafka_partition))
        GROUP BY r.kafka_partition ORDER BY 1
        """,
        {"pipeline": pipeline, "generation": generation, "start": start, "end": end},
    )
    return {row["kafka_partition"]: (row["start_offset"], row["end_offset"]) for row in rows}


def find_windows_before_log(
    connection: Connection, pipeline: str, generation: str, earliest: Mapping[int, int]
) -> frozenset[datetime]:
    """Return the windows with records of batches that began before the log's start now, or of another generation."""
    rows = connection.execute(
        """
        SELECT DISTINCT l.window_start FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        LEFT JOIN onceover.batch_range r ON r.batch_id = l.batch_id AND r.generation = p.generation
          AND r.kafka_partition = p.kafka_partition
        LEFT JOIN onceover.exact_range x ON x.batch_id = l.batch_id AND x.generation = p.generation
          AND x.kafka_partition = p.kafka_partition
        LEFT JOIN unnest(%(partitions)s::int[], %(starts)s::bigint[]) AS e (kafka_partition, earliest)
          ON e.kafka_partition = p.kafka_partition
        WHERE l.pipeline = %(pipeline)s AND l.window_start IS NOT NULL
          AND (p.generation <> %(generation)s OR e.earliest IS NULL
            OR coalesce(r.start_offset, x.start_offset) < e.earliest)
        """,
        {
            "pipeline": pipeline,
            "generation": generation,
            "partitions": list(earliest),
            "starts": list(earliest.values()),
        },
    )
    return frozenset(row["window_start"] for row in rows)
