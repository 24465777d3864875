"""The ledger's part of audits: requests, results, and the facts to audit by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.ledger.actions import record_action
from onceover.ledger.columns import read_count, read_range
from onceover.ledger.compactions import parse_compacted
from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.extras import list_extras
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.releases import list_releases
from onceover.ledger.windows import WITHIN
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.raw_file import CompactedFile
from onceover.model.release import Release


@dataclass(frozen=True, slots=True)
class Audit:
    """A requested audit. Kind `window` verifies one window's certificate, kind `log` compares a range of windows, or
    all windows, with Kafka's log; kind `restatement` previews one of a range."""

    audit_id: int
    pipeline: str
    kind: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class AuditedWindow:
    """A window as the ledger has it now: `control` is the digest of its aggregates (None: unknown)."""

    version: int
    control: Digest | None
    is_open: bool
    is_expired: bool
    compacted: CompactedFile | None


@dataclass(frozen=True, slots=True)
class LedgerStatement:
    """What the ledger says at one moment about the records to audit; which of them exist, it is not asked.

    `origins` and `reaches` bound what was read of each Kafka partition; `begun` are ranges of batches that may still
    land. Records with `accounted` offsets landed, or a certificate counts them. No reader can deliver `unreadable`
    offsets; a person accepted `lost` ones, which no certificate counts.
    """

    windows: Mapping[datetime, AuditedWindow]
    origins: Mapping[KafkaPartition, int]
    reaches: Mapping[KafkaPartition, int]
    begun: tuple[OffsetRange, ...]
    accounted: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...]
    unreadable: tuple[OffsetRange, ...]
    releases: tuple[Release, ...]
    has_expired_quarantine: bool


def record_request(
    connection: Connection, pipeline: str, kind: str, start: datetime | None, end: datetime | None, who: str
) -> int:
    """Record a request for an audit; return the audit's id."""
    return record_action(connection, pipeline, f"audit {kind}", who, None, {"start": start, "end": end})


def choose_certified(
    connection: Connection, pipeline: str, seed: str, *, most_records: int, most_bytes: int
) -> datetime | None:
    """Return the start of a window whose certificate is valid, of at most so many records and bytes of raw, at random:
    the same one for the same seed and windows. None if there is none."""
    row = connection.execute(
        """
        SELECT w.window_start FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
        WHERE w.pipeline = %s AND c.version = w.version AND w.expired_at IS NULL
          AND c.records <= %s AND c.frozen_length + CASE WHEN w.text_replaced THEN w.compacted_bytes ELSE 0 END <= %s
        ORDER BY md5(%s || extract(epoch FROM w.window_start)) LIMIT 1
        """,
        [pipeline, most_records, most_bytes, seed],
    ).fetchone()
    start: datetime | None = row["window_start"] if row else None
    return start


def read_audit(connection: Connection, pipeline: str, audit_id: int) -> tuple[Audit, Mapping[str, Any] | None]:
    """Return an audit, and its result (None: not finished). Raises UsageError for an unknown audit."""
    row = connection.execute(
        """
        SELECT substr(kind, 7) AS kind, (detail ->> 'start')::timestamptz AS start,
          (detail ->> 'end')::timestamptz AS "end", detail -> 'result' AS result
        FROM onceover.action WHERE action_id = %s AND pipeline = %s AND kind LIKE 'audit %%'
        """,
        [audit_id, pipeline],
    ).fetchone()
    if row is None:
        raise UsageError(f"pipeline {pipeline} has no audit {audit_id}; request one with `onceover audit {pipeline}`")
    return Audit(audit_id, pipeline, row["kind"], row["start"], row["end"]), row["result"]


def record_result(connection: Connection, audit_id: int, result: Mapping[str, Any]) -> None:
    """Record the result of an audit; an audit that runs again replaces it."""
    connection.execute(
        """
        UPDATE onceover.action SET detail = detail || jsonb_build_object('result', %s, 'finished_at', clock_timestamp())
        WHERE action_id = %s
        """,
        [Jsonb(result), audit_id],
    )


def read_windows(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> dict[datetime, AuditedWindow]:
    """Return the windows from `start` to before `end` (None: unbounded)."""
    rows = connection.execute(
        f"""
        SELECT w.*, NOT (p.every_window_closed OR coalesce(w.window_end <= p.watermark, false)) AS is_open
        FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
        WHERE w.pipeline = %(pipeline)s AND {WITHIN} ORDER BY w.window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return {
        row["window_start"]: AuditedWindow(
            row["version"], read_count(row), row["is_open"], row["expired_at"] is not None, parse_compacted(row)
        )
        for row in rows
    }


def read_statement(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> LedgerStatement:
    """Return what the ledger says in one snapshot, of windows those from `start` to before `end`."""
    with in_snapshot(connection):
        bounds = connection.execute(
            "SELECT generation, kafka_partition, origin, reach FROM onceover.kafka_partition WHERE pipeline = %s",
            [pipeline],
        ).fetchall()
        begun = _read_ranges(
            connection,
            "SELECT r.* FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id) "
            "WHERE b.pipeline = %s AND b.state = 'begun' AND NOT EXISTS (SELECT FROM onceover.read_again x "
            "WHERE x.pipeline = b.pipeline AND x.state = 'wanted' AND x.window_start IS NOT NULL "
            "AND x.generation = r.generation AND x.kafka_partition = r.kafka_partition "
            "AND x.start_offset <= r.start_offset AND r.end_offset <= x.end_offset)",  # has landed, and lands nothing
            pipeline,
        )
        losses = "SELECT * FROM onceover.accepted_loss WHERE pipeline = %s AND relanded_at IS NULL AND kind = "
        expired_day = connection.execute(
            "SELECT 1 FROM onceover.expiry WHERE pipeline = %s AND quarantine_day IS NOT NULL AND state <> 'dropped' "
            "LIMIT 1",
            [pipeline],
        ).fetchone()
        extras = [each.offsets for spans in list_extras(connection, pipeline).values() for each in spans]
        accounted = coalesce((*read_accounted(connection, pipeline), *extras))
        return LedgerStatement(
            windows=read_windows(connection, pipeline, start, end),
            origins={_parse_source(row): row["origin"] for row in bounds},
            reaches={_parse_source(row): row["reach"] for row in bounds},
            begun=begun,
            accounted=accounted,
            lost=subtract(_read_ranges(connection, losses + "'lost'", pipeline), accounted),
            unreadable=_read_ranges(connection, losses + "'unreadable'", pipeline),
            releases=list_releases(connection, pipeline),
            has_expired_quarantine=expired_day is not None,
        )


def _read_ranges(connection: Connection, query: str, pipeline: str) -> tuple[OffsetRange, ...]:
    rows = connection.execute(query, [pipeline])
    return coalesce(map(read_range, rows))


def _parse_source(row: Mapping[str, Any]) -> KafkaPartition:
    return KafkaPartition(row["generation"], row["kafka_partition"])
