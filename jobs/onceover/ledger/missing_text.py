"""Raw that is gone without an expiry in this ledger, because the file was lost, or the ledger restored from a backup
and retention moved the text away after it.

A window's last certificate and the rows that it states are still here, and no aggregate counts a quarantined record, so
a person can declare such a window or day expired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.certificates import FROZEN
from onceover.ledger.columns import read_digest
from onceover.ledger.database import Connection
from onceover.ledger.expiries import OF_DAYS, ExpiringFile
from onceover.ledger.findings import resolve_findings
from onceover.ledger.frontiers import EXTRAS_ARE_SETTLED
from onceover.ledger.windows import lock_windows
from onceover.model.digest import Digest


@dataclass(frozen=True, slots=True)
class CertifiedText:
    """The text of a window as last certified: its bytes, the digest of its records, the rows that the certificate
    states by their fingerprint (None: it states none), whether records landed since, and whether any that it counts
    may still land."""

    window_start: datetime
    version: int
    bytes: int
    digest: Digest
    contract_version: int
    rows: Fingerprint | None
    has_landings_since: bool
    may_land_again: bool


_CERTIFIED_TEXTS = f"""
  SELECT w.window_start, w.version, {FROZEN} AS bytes, c.records, c.high1, c.low1, c.high2, c.low2,
    c.contract_version, c.aggregate_rows, c.aggregate_hash, EXISTS (
      SELECT 1 FROM onceover.landing l WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start
        AND l.landing_id > c.last_landing) AS has_landings_since, NOT {EXTRAS_ARE_SETTLED} AS may_land_again
  FROM onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND NOT w.text_replaced AND c.frozen_length > 0
    AND coalesce(w.claimed_until < clock_timestamp(), true)"""


def list_certified_texts(connection: Connection, pipeline: str) -> list[CertifiedText]:
    """Return the windows whose last certificate, not revoked, covers text, in order."""
    rows = connection.execute(f"{_CERTIFIED_TEXTS} ORDER BY w.window_start", {"pipeline": pipeline})
    return [_parse(row) for row in rows if row["bytes"]]


def mark_expired(
    connection: Connection, pipeline: str, texts: Sequence[CertifiedText], who: str, why: str
) -> list[datetime]:
    """Mark those of these windows expired that have not changed since they were listed; return their starts. Lifts
    their blocks and resolves their findings."""
    versions = {text.window_start: text.version for text in texts}
    with connection.transaction():
        lock_windows(connection, pipeline, sorted(versions))
        rows = connection.execute(
            f"{_CERTIFIED_TEXTS} AND w.window_start = ANY(%(starts)s) ORDER BY w.window_start",
            {"pipeline": pipeline, "starts": list(versions)},
        ).fetchall()
        same = [
            row["window_start"]
            for row in rows
            if row["version"] == versions[row["window_start"]] and not row["may_land_again"]
        ]
        connection.execute(
            """
            UPDATE onceover."window" SET expired_at = clock_timestamp(), expired_why = %s, tries = 0, blocked_at = NULL,
              blocked_why = NULL
            WHERE pipeline = %s AND window_start = ANY(%s)
            """,
            [f"declared by {who}: {why}", pipeline, same],
        )
        for start in same:
            resolve_findings(connection, pipeline, start, "declared expired")
    return same


def list_quarantine_files(connection: Connection, pipeline: str) -> list[ExpiringFile]:
    """Return each day's quarantine file as its landings have it, in order; without expired days."""
    rows = connection.execute(f"{OF_DAYS} ORDER BY l.quarantine_day", {"pipeline": pipeline})
    return [ExpiringFile(**row) for row in rows]


def mark_days_expired(connection: Connection, pipeline: str, files: Sequence[ExpiringFile], who: str, why: str) -> int:
    """Mark these days of quarantine expired, with nothing left to move away. Returns their number."""
    cursor = connection.cursor()
    cursor.executemany(
        """
        INSERT INTO onceover.expiry (pipeline, quarantine_day, last_landing, bytes, records, landed_at, who, why, state,
          finished_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'deleted', clock_timestamp()) ON CONFLICT DO NOTHING
        """,
        [(pipeline, x.quarantine_day, x.last_landing, x.bytes, x.records, x.landed_at, who, why) for x in files],
    )
    return cursor.rowcount


def _parse(row: Mapping[str, Any]) -> CertifiedText:
    hashed = row["aggregate_hash"]
    return CertifiedText(
        window_start=row["window_start"],
        version=row["version"],
        bytes=row["bytes"],
        digest=read_digest(row),
        contract_version=row["contract_version"],
        rows=None if hashed is None else Fingerprint(row["aggregate_rows"], hashed),
        has_landings_since=row["has_landings_since"],
        may_land_again=row["may_land_again"],
    )
