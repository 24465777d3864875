"""The expected aggregates, computed from the CSV alone, without any of the pipeline's code or SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Key = tuple[int, str, str]  # window's start in seconds since 1970, origin, carrier
Row = tuple[int, int, int]  # flights, sum of delays, worst delay

# New York is at UTC-5 all January. Days since 1970 of 2013-01-01, by the calendar.
_FIRST_OF_JANUARY = 15_706
_OFFSET_HOURS = 5


def expected(rows: Iterable[Mapping[str, str]]) -> dict[Key, Row]:
    """Compute flights, sum of delays and worst delay of January's flown flights by scheduled hour in UTC, origin and
    carrier."""
    aggregates: dict[Key, Row] = {}
    for row in rows:
        if row["month"] != "1" or row["dep_delay"] in ("", "NA"):
            continue
        hour = (_FIRST_OF_JANUARY + int(row["day"]) - 1) * 24 + int(row["sched_dep_time"]) // 100 + _OFFSET_HOURS
        delay = int(float(row["dep_delay"]))
        key = (hour * 3600, row["origin"], row["carrier"])
        flights, total, worst = aggregates.get(key, (0, 0, delay))
        aggregates[key] = (flights + 1, total + delay, max(worst, delay))
    return aggregates


@dataclass(frozen=True, slots=True)
class OracleDifference:
    """The difference between the aggregates and the oracle."""

    wrong_windows: frozenset[int]
    wrong_rows: int
    largest_error: int  # flights counted too many or too few in one row
    surplus: int  # flights counted in all, less flights flown

    @property
    def is_equal(self) -> bool:
        return not self.wrong_rows


def compare(aggregates: Mapping[Key, Row], oracle: Mapping[Key, Row]) -> OracleDifference:
    """Compare every window and key of either side."""
    wrong = [key for key in aggregates.keys() | oracle.keys() if aggregates.get(key) != oracle.get(key)]
    none = (0, 0, 0)
    return OracleDifference(
        wrong_windows=frozenset(key[0] for key in wrong),
        wrong_rows=len(wrong),
        largest_error=max((abs(aggregates.get(k, none)[0] - oracle.get(k, none)[0]) for k in wrong), default=0),
        surplus=sum(row[0] for row in aggregates.values()) - sum(row[0] for row in oracle.values()),
    )
