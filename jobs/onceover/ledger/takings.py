"""Who works on which windows: a window has one holder, from when a person takes it until its next certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from onceover.errors import TakenError, UsageError
from onceover.ledger.actions import record_action
from onceover.ledger.database import Connection
from onceover.ledger.windows import RAW_IS_DAMAGED, STATE, UNSETTLED, WITHIN
from onceover.model.ticket import format_holder
from onceover.model.window import WindowRange, format_moment, format_second
from onceover.model.wording import pluralize

_CHOOSE = f"""
SELECT w.window_start FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(unsettled)s) AND w.window_start >= %(start)s
  AND w.window_start < %(end)s AND {STATE} NOT IN ('certified', 'expired')
  AND (w.blocked_at IS NOT NULL OR NOT w.is_certified OR {RAW_IS_DAMAGED})
ORDER BY w.window_start FOR UPDATE OF w
"""


@dataclass(frozen=True, slots=True)
class Taking:
    """The windows that a person holds for a ticket, between `start` and `end`; `why` if others held them before."""

    start: datetime
    end: datetime
    windows: int
    who: str
    ticket: str
    why: str | None
    taken_at: datetime

    @property
    def holder(self) -> str:
        """Who has taken the windows, and for which ticket, as a list shows it."""
        return format_holder(self.who, self.ticket)

    def describe_holder(self) -> str:
        """Return who has taken the windows, for which ticket, since when, and why they were taken over."""
        since = format_second(self.taken_at)
        return f"taken by {self.who} for {self.ticket} at {since}" + (f' ("{self.why}")' if self.why else "")

    def describe(self) -> str:
        """Return which windows they are, and their holder."""
        until = f" to {format_moment(self.end)}" if self.windows > 1 else ""
        count = pluralize(self.windows, "window")
        return f"{count}, {format_moment(self.start)}{until}, {self.describe_holder()}"


def list_takings(
    connection: Connection, pipeline: str, start: datetime | None = None, end: datetime | None = None
) -> list[Taking]:
    """Return what persons hold of the windows in `[start, end)`, without a bound of all, in order of time."""
    rows = connection.execute(
        f"""
        SELECT min(w.window_start) AS start, max(w.window_end) AS "end", count(*) AS windows, t.who,
          t.detail ->> 'ticket' AS ticket, t.why, t.created_at AS taken_at
        FROM onceover."window" w JOIN onceover.action t ON t.action_id = w.taking_id
        WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND {WITHIN}
        GROUP BY t.action_id ORDER BY 1
        """,
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return [Taking(**row) for row in rows]


def take_windows(
    connection: Connection, pipeline: str, span: WindowRange, who: str, ticket: str, why: str | None = None
) -> tuple[int, Sequence[Taking]]:
    """Take the windows of the range that are not certified; return how many, and what others held of them until now.

    Raises TakenError if others hold some and `why` is None, and UsageError if no window is there to be taken; nothing
    changes then.
    """
    with connection.transaction():
        others = [each for each in _lock(connection, pipeline, span) if each.who != who]
        if others and why is None:
            raise TakenError(_refuse(others, "take them over"))
        unsettled = [row["window_start"] for row in connection.execute(UNSETTLED, {"pipeline": pipeline})]
        taken = [
            row["window_start"]
            for row in connection.execute(
                _CHOOSE, {"pipeline": pipeline, "start": span.start, "end": span.end, "unsettled": unsettled}
            )
        ]
        if not taken:
            raise UsageError(
                f"no window from {format_moment(span.start)} to {format_moment(span.end)} of {pipeline} can be taken: "
                f"all that are there are certified or expired; see `onceover windows {pipeline}`"
            )
        detail = {"ticket": ticket, "first": taken[0], "windows": len(taken)}
        taking = record_action(connection, pipeline, "take windows", who, why if others else None, detail)
        connection.execute(
            'UPDATE onceover."window" SET taking_id = %s WHERE pipeline = %s AND window_start = ANY(%s)',
            [taking, pipeline, taken],
        )
    return len(taken), others


def release_windows(
    connection: Connection, pipeline: str, span: WindowRange, who: str, why: str | None = None
) -> tuple[int, Sequence[Taking]]:
    """Release the windows of the range; return how many, and what others held of them. Raises as `take_windows`."""
    with connection.transaction():
        held = _lock(connection, pipeline, span)
        others = [each for each in held if each.who != who]
        if others and why is None:
            raise TakenError(_refuse(others, "release them"))
        if not held:
            raise UsageError(
                f"no window from {format_moment(span.start)} to {format_moment(span.end)} of {pipeline} is taken; "
                f"list what is taken: `onceover take {pipeline}`"
            )
        windows = sum(each.windows for each in held)
        detail = {"first": held[0].start, "windows": windows}
        record_action(connection, pipeline, "release windows", who, why if others else None, detail)
        connection.execute(
            """
            UPDATE onceover."window" w SET taking_id = NULL FROM (
              SELECT window_start FROM onceover."window" WHERE pipeline = %(pipeline)s AND taking_id IS NOT NULL
                AND window_start >= %(start)s AND window_start < %(end)s ORDER BY window_start FOR UPDATE) held
            WHERE w.pipeline = %(pipeline)s AND w.window_start = held.window_start
            """,
            {"pipeline": pipeline, "start": span.start, "end": span.end},
        )
    return windows, others


def _lock(connection: Connection, pipeline: str, span: WindowRange) -> list[Taking]:
    """Keep other takings of the pipeline out until the transaction ends; return who holds the range."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"onceover take {pipeline}"])
    return list_takings(connection, pipeline, span.start, span.end)


def _refuse(others: Sequence[Taking], verb: str) -> str:
    return f"{'; '.join(each.describe() for each in others[:3])}; ask there, or give a reason to {verb} all the same"
