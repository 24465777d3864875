"""The starts of windows by the clock of their zone, in rows of values and as tables show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onceover.model.window import format_moment, join_times, parse_moment
from onceover.model.windowing import Windowing

if TYPE_CHECKING:
    from onceover.ledger.expiries import ExpiringFile


def add_local(windowing: Windowing, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows, each with the start of its `window` by the zone's clock as `local`; as they are where windows
    are of UTC, and a row of quarantine."""
    return [
        {**row, "local": windowing.describe_local(_to_moment(row["window"]))}
        if windowing.zone and row["window"] != "quarantine"
        else row
        for row in rows
    ]


def add_local_in(windowing: Windowing, result: Mapping[str, Any], *lists: str) -> dict[str, Any]:
    """Return the result with these lists of it as `add_local` makes them."""
    return {**result, **{name: add_local(windowing, result[name]) for name in lists}}


def format_window(row: Mapping[str, Any], key: str = "window") -> str:
    """Return the start of a row's window, and what the zone's clock shows then."""
    start = row[key]
    return join_times(format_moment(start) if isinstance(start, datetime) else str(start), row.get("local"))


def name_source(windowing: Windowing, file: ExpiringFile) -> str:
    """Return of what a raw file holds the records: the window, or the day of quarantine."""
    return windowing.show(file.window_start) if file.window_start else f"quarantine {file.quarantine_day}"


def _to_moment(start: datetime | str) -> datetime:
    return parse_moment(start) if isinstance(start, str) else start
