"""Confirms what a repair published: reads the rows again, revokes certificates that differ, and says how each window
ended, for Airflow and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onceover.context import PipelineContext
from onceover.ledger import repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import revoke
from onceover.ledger.database import Connection
from onceover.ledger.windows import cut_into_chunks
from onceover.model.repair_failure import lacks_lines
from onceover.model.window import format_moment


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The outcome of a repair request: its windows by state, each with a reason where there is one. Windows `left` are
    neither done nor failed, and `cancelled` ones were not begun. Of a failed one, raw may be `lacking` lines."""

    pipeline: str
    request_id: int
    confirmed: tuple[str, ...]
    revoked: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    newly_blocked: tuple[tuple[str, str], ...]
    unneeded: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    duplicates: int
    lines_read: int
    cancelled: tuple[tuple[str, str], ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def outcomes(self) -> dict[str, tuple[str, str]]:
        """Return the outcome of each window, and its reason where there is one."""
        outcomes = dict.fromkeys(self.confirmed, ("confirmed", ""))
        for state, rows in (
            ("unneeded", self.unneeded),
            ("left", self.left),
            ("revoked", self.revoked),
            ("failed", self.failed),
            ("blocked", self.newly_blocked),
            ("cancelled", self.cancelled),
        ):
            outcomes |= {window: (state, why) for window, why in rows}
        return outcomes


def confirm(context: PipelineContext, request_id: int) -> Confirmation:
    """Re-read the rows that a request published, revoke certificates that differ, and return each window's outcome."""
    registered, connection = context.require_same_contract(), context.ledger
    repair_requests.read_request(connection, registered.name, request_id)
    rows = reread_published(connection, registered, request_id)

    def of(state: str) -> list[tuple[str, str]]:
        return [(format_moment(row["window_start"]), row["reason"] or "") for row in rows if row["state"] == state]

    return Confirmation(
        pipeline=registered.name,
        request_id=request_id,
        confirmed=tuple(window for window, _ in of("confirmed")),
        revoked=tuple(of("revoked")),
        failed=tuple(of("failed")),
        newly_blocked=tuple(
            (format_moment(row["window_start"]), row["reason"] or "") for row in rows if row["blocked"]
        ),
        unneeded=tuple(of("unneeded")),
        left=(
            *of("left"),
            *((window, "changed since it was published; it is judged again") for window, _ in of("published")),
            *((window, "the repair ended before reaching it") for window, _ in of("planned") + of("claimed")),
        ),
        duplicates=sum(row["duplicates"] or 0 for row in rows),
        lines_read=sum(row["lines_read"] or 0 for row in rows),
        cancelled=tuple(of("cancelled")),
        lacking=tuple(format_moment(row["window_start"]) for row in rows if lacks_lines(row["failures"])),
    )


def reread_published(connection: Connection, registered: RegisteredPipeline, request_id: int) -> list[dict[str, Any]]:
    """Re-read the rows that a request published and revoke certificates that differ. Returns the request's repairs.

    A window that changed since (a late record) is left to the next detection, which judges it again. Each chunk of
    windows is a transaction of its own, so that ingest never waits long for a window.
    """
    published = connection.execute(
        "SELECT window_start FROM onceover.repair WHERE request_id = %s AND pipeline = %s AND state = 'published'",
        [request_id, registered.name],
    ).fetchall()
    for chunk in cut_into_chunks(row["window_start"] for row in published):
        with connection.transaction():
            _confirm_chunk(connection, registered, request_id, chunk)
    return list(
        connection.execute(
            "SELECT window_start, state, reason, failures, blocked, duplicates, lines_read, findings "
            "FROM onceover.repair WHERE request_id = %s AND pipeline = %s ORDER BY window_start",
            [request_id, registered.name],
        )
    )


def _confirm_chunk(
    connection: Connection, registered: RegisteredPipeline, request_id: int, starts: list[datetime]
) -> None:
    rows = connection.execute(
        """
        SELECT r.repair_id, r.window_start, c.certificate_id, c.aggregate_rows, c.aggregate_hash, c.contract_version
        FROM onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
        JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
          AND w.version = c.version AND w.certificate_id = c.certificate_id
        WHERE r.request_id = %s AND r.pipeline = %s AND r.window_start = ANY(%s) AND r.state = 'published'
        ORDER BY r.window_start FOR UPDATE OF w
        """,
        [request_id, registered.name, starts],
    ).fetchall()
    found = registered.read_fingerprints(connection, {row["window_start"]: row["contract_version"] for row in rows})
    for row in rows:
        reread = found[row["window_start"]]
        same = (reread.rows, reread.hash) == (row["aggregate_rows"], row["aggregate_hash"])
        why = f"re-read {reread.rows} rows that differ from the {row['aggregate_rows']} published"
        connection.execute(
            "UPDATE onceover.repair SET state = %s, reason = %s WHERE repair_id = %s",
            ["confirmed", None, row["repair_id"]] if same else ["revoked", why, row["repair_id"]],
        )
        if not same:
            revoke(connection, registered.name, row["certificate_id"], "the re-read rows differ from those published")
