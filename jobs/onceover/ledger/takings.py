"""Who works on which windows: a window has one holder, from when a person takes it until its next certificate.

A later certificate ends a taking by being there. Rows of takings that have ended go when windows are taken next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onceover.errors import TakenError, UsageError
from onceover.ledger.database import Connection
from onceover.ledger.holders import HELD
from onceover.ledger.windows import RAW_IS_DAMAGED, STATE, UNSETTLED
from onceover.model.ticket import format_holder
from onceover.model.window import WindowRange, format_moment, format_second
from onceover.model.wording import pluralize

_HELD_IN = f"""
  FROM onceover.taken_window n JOIN onceover.taking t USING (taking_id)
  JOIN onceover."window" w ON w.pipeline = n.pipeline AND w.window_start = n.window_start
  WHERE n.pipeline = %(pipeline)s AND (%(start)s::timestamptz IS NULL OR n.window_start >= %(start)s)
    AND (%(end)s::timestamptz IS NULL OR n.window_start < %(end)s) AND {HELD}"""

_FORGET = f"""
DELETE FROM onceover.taken_window n USING onceover."window" w WHERE n.pipeline = %(pipeline)s
  AND w.pipeline = n.pipeline AND w.window_start = n.window_start AND NOT ({HELD})"""

_TAKE = f"""
INSERT INTO onceover.taken_window (pipeline, window_start, taking_id, last_certificate)
SELECT w.pipeline, w.window_start, %(taking)s, coalesce((SELECT max(last.certificate_id) FROM onceover.certificate last
  WHERE last.pipeline = w.pipeline AND last.window_start = w.window_start), 0)
FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(unsettled)s) AND w.window_start >= %(start)s
  AND w.window_start < %(end)s AND {STATE} NOT IN ('certified', 'expired')
  AND (w.blocked_at IS NOT NULL OR NOT w.is_certified OR {RAW_IS_DAMAGED})
ON CONFLICT (pipeline, window_start)
  DO UPDATE SET taking_id = excluded.taking_id, last_certificate = excluded.last_certificate
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
        SELECT min(w.window_start) AS start, max(w.window_end) AS "end", count(*) AS windows, t.who, t.ticket, t.why,
          t.taken_at {_HELD_IN} GROUP BY t.taking_id ORDER BY 1
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
    key: dict[str, Any] = {"pipeline": pipeline, "start": span.start, "end": span.end}
    with connection.transaction():
        others = [each for each in _lock(connection, key) if each.who != who]
        if others and why is None:
            raise TakenError(_refuse(others, "take them over"))
        key["unsettled"] = [row["window_start"] for row in connection.execute(UNSETTLED, key)]
        key["taking"] = _note(connection, key, who, ticket, why if others else None)
        taken = connection.execute(_TAKE, key).rowcount
        if not taken:
            raise UsageError(
                f"no window from {format_moment(span.start)} to {format_moment(span.end)} of {pipeline} can be taken: "
                f"all that are there are certified or expired; see `onceover windows {pipeline}`"
            )
        _count(connection, key["taking"], taken)
    return taken, others


def release_windows(
    connection: Connection, pipeline: str, span: WindowRange, who: str, why: str | None = None
) -> tuple[int, Sequence[Taking]]:
    """Release the windows of the range; return how many, and what others held of them. Raises as `take_windows`."""
    key: dict[str, Any] = {"pipeline": pipeline, "start": span.start, "end": span.end}
    with connection.transaction():
        held = _lock(connection, key)
        others = [each for each in held if each.who != who]
        if others and why is None:
            raise TakenError(_refuse(others, "release them"))
        if not held:
            raise UsageError(
                f"no window from {format_moment(span.start)} to {format_moment(span.end)} of {pipeline} is taken; "
                f"list what is taken: `onceover take {pipeline}`"
            )
        number = _note(connection, key, who, None, why if others else None)
        connection.execute(
            "DELETE FROM onceover.taken_window WHERE pipeline = %(pipeline)s AND window_start >= %(start)s "
            "AND window_start < %(end)s",
            key,
        )
        windows = sum(each.windows for each in held)
        _count(connection, number, windows)
    return windows, others


def _lock(connection: Connection, key: Mapping[str, Any]) -> list[Taking]:
    """Keep other takings out until the transaction ends, no reader and no ingest; return who holds the range."""
    connection.execute("LOCK TABLE onceover.taken_window IN SHARE ROW EXCLUSIVE MODE")
    connection.execute(_FORGET, key)
    return list_takings(connection, key["pipeline"], key["start"], key["end"])


def _refuse(others: Sequence[Taking], verb: str) -> str:
    return f"{'; '.join(each.describe() for each in others[:3])}; ask there, or give a reason to {verb} all the same"


def _note(connection: Connection, key: Mapping[str, Any], who: str, ticket: str | None, why: str | None) -> int:
    rows = connection.execute(
        "INSERT INTO onceover.taking (pipeline, first_window, windows, who, ticket, why) "
        "VALUES (%(pipeline)s, %(start)s, 0, %(who)s, %(ticket)s, %(why)s) RETURNING taking_id",
        {**key, "who": who, "ticket": ticket, "why": why},
    ).fetchall()
    return int(rows[0]["taking_id"])


def _count(connection: Connection, taking: int, windows: int) -> None:
    connection.execute("UPDATE onceover.taking SET windows = %s WHERE taking_id = %s", [windows, taking])
