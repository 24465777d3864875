"""Windows with a valid certificate: its statement, and what the ledger and the aggregates hold now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.columns import read_count, read_digest
from onceover.ledger.compactions import FROZEN, parse_compacted
from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.windows import WITHIN
from onceover.model.finding import Evidence


@dataclass(frozen=True, slots=True)
class CertifiedWindow:
    """A window at its certified version, with the `evidence` that detection would judge: nothing has landed since.
    `stated` fingerprints the certified rows, `rows` the rows in the table now."""

    evidence: Evidence
    certificate_id: int
    stated: Fingerprint
    rows: Fingerprint

    @property
    def rows_differ(self) -> bool:
        return self.stated != self.rows


def list_certified(
    connection: Connection, registered: RegisteredPipeline, start: datetime | None, end: datetime | None, most: int
) -> list[CertifiedWindow]:
    """Return the first `most` windows from `start` to before `end` (None: unbounded), in order and in one snapshot.

    Ingest and repair change rows and version together, so that an unchanged version means untouched rows.
    """
    which = f"{WITHIN} ORDER BY w.window_start LIMIT %(most)s"
    return _read(connection, registered, which, {"start": start, "end": end, "most": most})


def read_certified(
    connection: Connection, registered: RegisteredPipeline, starts: Iterable[datetime]
) -> list[CertifiedWindow]:
    """Return those of these windows whose certificate is still valid, in one snapshot."""
    which = "w.window_start = ANY(%(starts)s) ORDER BY w.window_start"
    return _read(connection, registered, which, {"starts": sorted(starts)})


def read_certified_versions(connection: Connection, pipeline: str, starts: Iterable[datetime]) -> dict[datetime, int]:
    """Return the versions of those of these windows whose certificate is still valid."""
    rows = connection.execute(
        f"SELECT w.window_start, w.version {_CERTIFIED} AND w.window_start = ANY(%(starts)s)",
        {"pipeline": pipeline, "starts": sorted(starts)},
    )
    return {row["window_start"]: row["version"] for row in rows}


def read_frozen_lengths(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> dict[datetime, int]:
    """Return the bytes of text that the valid certificates of the range's windows cover, in order."""
    rows = connection.execute(
        f"SELECT w.window_start, {FROZEN} AS bytes {_CERTIFIED} AND {WITHIN} ORDER BY w.window_start",
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return {row["window_start"]: row["bytes"] for row in rows}


def count_certified(connection: Connection, pipeline: str, start: datetime | None, end: datetime | None) -> int:
    """Count the windows of the range whose certificate is valid."""
    row = connection.execute(
        f"SELECT count(*) AS windows {_CERTIFIED} AND {WITHIN}",
        {"pipeline": pipeline, "start": start, "end": end},
    ).fetchone()
    return int(row["windows"]) if row else 0


_CERTIFIED = """
  FROM onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id AND c.version = w.version
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL"""


def _read(
    connection: Connection, registered: RegisteredPipeline, which: str, values: Mapping[str, object]
) -> list[CertifiedWindow]:
    with in_snapshot(connection):
        rows = connection.execute(
            f"""
            SELECT w.*, {FROZEN} AS frozen_length, c.records AS c_records, c.high1 AS c_high1, c.low1 AS c_low1,
              c.high2 AS c_high2, c.low2 AS c_low2, c.aggregate_rows, c.aggregate_hash, c.contract_version
            {_CERTIFIED} AND {which}
            """,
            {"pipeline": registered.name, **values},
        ).fetchall()
        fingerprints = registered.read_fingerprints(
            connection, {row["window_start"]: row["contract_version"] for row in rows}
        )
    return [
        CertifiedWindow(
            Evidence(
                window_start=row["window_start"],
                window_end=row["window_end"],
                version=row["version"],
                control=read_count(row),
                certified=read_digest(row, "c_"),
                certificate_version=row["version"],
                frozen_length=row["frozen_length"],
                compacted=parse_compacted(row),
            ),
            row["certificate_id"],
            Fingerprint(row["aggregate_rows"], row["aggregate_hash"]),
            fingerprints[row["window_start"]],
        )
        for row in rows
    ]
