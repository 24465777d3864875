"""Lengths and counts that windows should have, by their certificates and the landings since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.certificates import FROZEN
from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import read_count, read_digest
from onceover.model.digest import Digest


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The bytes of one window's file that the ledger accounts for. With an unproved landing the file may hold more; so
    may that of a window which was declared expired while records of it were pending, for only a search reads it."""

    window_start: datetime
    expected_length: int
    has_unproved: bool
    is_certified: bool
    is_expired: bool
    is_blocked: bool = False


def list_expected_files(
    connection: Connection, pipeline: str, start: datetime | None = None, end: datetime | None = None
) -> list[ExpectedFile]:
    """Return all windows from `start` to before `end` (None: unbounded), in order: open, closed and expired ones.

    Reads no landing of a window whose certificate is valid: nothing has landed in it since.
    """
    rows = connection.execute(
        f"""
        SELECT w.window_start, (coalesce({FROZEN}, 0) + coalesce(since.bytes, 0))::bigint AS expected_length,
          coalesce(since.has_unproved, false) OR coalesce(w.expired_at IS NOT NULL AND c.pending <> '[]', false)
            AS has_unproved, w.is_certified,
          w.expired_at IS NOT NULL AS is_expired, w.blocked_at IS NOT NULL AS is_blocked
        FROM onceover."window" w LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        LEFT JOIN LATERAL (
          SELECT bool_or(NOT l.proved) AS has_unproved, sum(l.byte_end - l.byte_start) FILTER (
            WHERE l.byte_start >= coalesce({FROZEN}, 0) AND coalesce(l.landing_id > w.removed_to_landing, true)
          ) AS bytes
          FROM onceover.landing l
          WHERE NOT w.is_certified AND l.pipeline = w.pipeline AND l.window_start = w.window_start
            AND l.landing_id > coalesce(c.last_landing, 0)) since ON true
        WHERE w.pipeline = %(pipeline)s AND (%(start)s::timestamptz IS NULL OR w.window_start >= %(start)s)
          AND (%(end)s::timestamptz IS NULL OR w.window_start < %(end)s)
        ORDER BY w.window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return [ExpectedFile(**row) for row in rows]


def read_expected_count(connection: Connection, pipeline: str, window_start: datetime) -> tuple[Digest | None, Digest]:
    """Return what a window's rows count (None: unknown), and what its certificate and the landings since say."""
    row = connection.execute(
        """
        SELECT w.records, w.high1, w.low1, w.high2, w.low2, c.records AS c_records, c.high1 AS c_high1,
          c.low1 AS c_low1, c.high2 AS c_high2, c.low2 AS c_low2, since.*
        FROM onceover."window" w LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        CROSS JOIN LATERAL (
          SELECT sum(records) AS s_records, sum(high1) AS s_high1, sum(low1) AS s_low1, sum(high2) AS s_high2,
            sum(low2) AS s_low2
          FROM onceover.landing l WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start
            AND l.landing_id > coalesce(c.last_landing, 0)) since
        WHERE w.pipeline = %s AND w.window_start = %s
        """,
        [pipeline, window_start],
    ).fetchone()
    if row is None:
        return None, Digest()
    return read_count(row), read_digest(row, "c_") + read_digest(row, "s_")
