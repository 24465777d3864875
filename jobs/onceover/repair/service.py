"""The outcome of a repair request, for Airflow and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.context import PipelineContext
from onceover.ledger import repair_requests
from onceover.model.repair_failure import lacks_lines
from onceover.model.window import format_moment
from onceover.repair.confirm import reread_published


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
