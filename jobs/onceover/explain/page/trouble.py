"""Trouble: unbroken ranges of windows that are wrong for the same reason, or not judged, with what they are off by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.landings import count_distinct_records
from onceover.ledger.page_overview import list_troubled_ranges, read_consistently
from onceover.ledger.windows import WindowState, list_windows
from onceover.model.finding_kinds import Kind
from onceover.model.ticket import format_holder

_MAX_COUNTED: Final = 500
"""Duplicated windows whose landings one answer counts: each has a landing for every batch."""


@dataclass(frozen=True, slots=True)
class TroublePage:
    """Ranges in order; the rest are those after `next`, None if there is no more."""

    rows: tuple[Mapping[str, Any], ...]
    next: datetime | None

    def find_span(self, most: timedelta) -> tuple[datetime, datetime] | None:
        """Return start and end of one range with all of several rows, None if it is longer than `most`."""
        if len(self.rows) < 2:
            return None
        start, end = self.rows[0]["start"], max(row["end"] for row in self.rows)
        return (start, end) if end - start <= most else None


def list_trouble(
    connection: Connection,
    name: str,
    state: WindowState | None = None,
    after: datetime | None = None,
    limit: int = 100,
) -> TroublePage:
    """Return at most `limit` ranges of that state that begin after `after`, as `list_troubled_ranges` does; without a
    state, those that are closed and not certified or have a finding. `difference` is what the aggregates count too
    many, negative too few, as far as the ledger shows it; None if that is unknown without reading raw. `holder` is the
    person who works on them and the ticket, as a list shows them."""
    with read_consistently(connection):
        rows = list_troubled_ranges(connection, name, state, after, limit + 1)
        ranges = [
            {**row, "holder": row["taken_by"] and format_holder(row["taken_by"], row["ticket"])} for row in rows[:limit]
        ]
        counted = 0
        for each in ranges:
            if Kind.DUPLICATED in each["findings"]:
                counted += each["windows"]
                each["difference"] = _count_difference(connection, name, each) if counted <= _MAX_COUNTED else None
    return TroublePage(tuple(ranges), ranges[-1]["start"] if len(rows) > limit else None)


def _count_difference(connection: Connection, name: str, each: Mapping[str, Any]) -> int | None:
    """Return counted less distinct records of the range's windows: duplicates show in no count of the ledger's."""
    windows = list_windows(connection, name, None, each["start"], each["end"])
    counted: Sequence[Any] = [row["records"] for row in windows]
    distinct = count_distinct_records(connection, name, [w["window_start"] for w in windows])
    held = [distinct.get(w["window_start"], 0) for w in windows]
    if None in counted or None in held:
        return None
    return int(sum(counted) - sum(n or 0 for n in held))
