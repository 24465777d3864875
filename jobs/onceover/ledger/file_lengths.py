"""Lengths and counts that windows should have, by their certificates and the landings since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.certificates import FROZEN
from onceover.ledger.database import Connection


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """The bytes of one window's file that the ledger accounts for. With an unproved landing the file may hold more."""

    window_start: datetime
    expected_length: int
    has_unproved: bool
    is_certified: bool
    is_expired: bool


def list_expected_files(
    connection: Connection, pipeline: str, start: datetime | None = None, end: datetime | None = None
) -> list[ExpectedFile]:
    """Return all windows from `start` to before `end` (None: unbounded), in order: open, closed and expired ones.

    Reads no landing of a window whose certificate is valid: nothing has landed in it since.
    """
    rows = connection.execute(
        f"""
        SELECT w.window_start, (coalesce({FROZEN}, 0) + coalesce(since.bytes, 0))::bigint AS expected_length,
          coalesce(since.has_unproved, false) AS has_unproved, w.is_certified,
          w.expired_at IS NOT NULL AS is_expired
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
