"""Findings in the ledger: open until they are resolved, one of a kind per window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from psycopg.types.json import Jsonb

from onceover.ledger.database import Connection
from onceover.ledger.windows import cut_into_chunks, lock_windows
from onceover.model.finding import Finding
from onceover.model.finding_kinds import BY_SCAN, Kind

_NOTE: Final = """
  INSERT INTO onceover.finding (pipeline, window_start, kind, evidence) VALUES (%s, %s, %s, %s)
  ON CONFLICT (pipeline, window_start, kind) WHERE resolved_at IS NULL
  DO UPDATE SET evidence = excluded.evidence, last_seen_at = now()"""


def note_finding(connection: Connection, pipeline: str, window_start: datetime | None, finding: Finding) -> None:
    """Record a finding, or refresh the open one of its kind."""
    connection.execute(_NOTE, [pipeline, window_start, str(finding.kind), Jsonb(finding.evidence)])


def record_failed_windows(connection: Connection, pipeline: str, found: Mapping[datetime, Sequence[Finding]]) -> None:
    """Record the findings of these windows as `record_findings` does. Each chunk is a transaction of its own, so that
    ingest never waits long for a window."""
    for chunk in cut_into_chunks(found):
        with connection.transaction():
            lock_windows(connection, pipeline, chunk)
            record_findings(connection, pipeline, {start: found[start] for start in chunk})


def record_findings(
    connection: Connection,
    pipeline: str,
    found: Mapping[datetime, Sequence[Finding]] | Mapping[None, Sequence[Finding]],
    *,
    by_scan: bool = False,
) -> None:
    """Record the findings of these windows, or of the pipeline (None), and resolve their others: those that the ledger
    and the files' lengths show, or those that only a scan of raw shows."""
    noted = [(start, finding) for start, findings in found.items() for finding in findings]
    connection.cursor().executemany(
        _NOTE, [(pipeline, start, str(finding.kind), Jsonb(finding.evidence)) for start, finding in noted]
    )
    connection.execute(
        """
        UPDATE onceover.finding SET resolved_at = now(), resolution = 'no longer there'
        WHERE pipeline = %s AND (window_start = ANY(%s) OR (%s AND window_start IS NULL)) AND resolved_at IS NULL
          AND kind = ANY(%s) AND (coalesce(window_start, '-infinity'), kind) NOT IN (
            SELECT coalesce(start, '-infinity'), kind FROM unnest(%s::timestamptz[], %s::text[]) AS noted (start, kind))
        """,
        [
            pipeline,
            list(found),
            None in found,
            [str(kind) for kind in Kind if (kind in BY_SCAN) == by_scan],
            [start for start, _ in noted],
            [str(finding.kind) for _, finding in noted],
        ],
    )


def record_failed_scan(
    connection: Connection, pipeline: str, window_start: datetime, findings: Iterable[Finding], read: bool
) -> None:
    """Record why a repair failed; if it `read` the window, resolve the other findings that a scan showed. A window with
    lines known to be missing needs no `failed proof` beside that."""
    missing = connection.execute(
        "SELECT FROM onceover.finding WHERE pipeline = %s AND window_start = %s AND kind = %s AND resolved_at IS NULL",
        [pipeline, window_start, str(Kind.MISSING_FILE)],
    ).fetchone()
    kept = [finding for finding in findings if missing is None or finding.kind is not Kind.FAILED_PROOF]
    if read:
        record_findings(connection, pipeline, {window_start: kept}, by_scan=True)
        return
    for finding in kept:
        note_finding(connection, pipeline, window_start, finding)


def resolve_findings(connection: Connection, pipeline: str, window_start: datetime, how: str) -> None:
    """Resolve all findings about a window."""
    connection.execute(
        "UPDATE onceover.finding SET resolved_at = now(), resolution = %s "
        "WHERE pipeline = %s AND window_start = %s AND resolved_at IS NULL",
        [how, pipeline, window_start],
    )
