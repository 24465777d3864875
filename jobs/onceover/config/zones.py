"""Time zones by their IANA names, and the changes of their offsets, by the data of the locked package `tzdata`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

_DATA = files("tzdata")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END = (datetime(2100, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_STEP = 86_400


@lru_cache(maxsize=1)
def list_zones() -> tuple[str, ...]:
    return tuple(sorted(_DATA.joinpath("zones").read_text("utf-8").split()))


def read_version() -> str:
    """Return the version of the data, as IANA names it: 2026f."""
    return _DATA.joinpath("zoneinfo", "tzdata.zi").read_text("utf-8").split("\n", 1)[0].rpartition(" ")[2]


def open_zone(name: str) -> ZoneInfo:
    """Return the zone by the package's data, whatever the operating system has. Raises LookupError for an unknown
    name."""
    if name not in list_zones():
        raise LookupError(f"{name[:80]!r} is not the name of a time zone")
    with _DATA.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=8)
def read_changes(name: str) -> tuple[tuple[int, int], ...]:
    """Return the zone's offsets from UTC in seconds, each from a second since 1970 on, up to 2100. Raises LookupError
    for an unknown zone."""
    zone = open_zone(name)
    changes = [(0, _find_offset(zone, 0))]
    for day in range(0, _END, _STEP):
        at_end = _find_offset(zone, day + _STEP)
        while (at_start := changes[-1][1]) != at_end:
            first, last = max(day, changes[-1][0]), day + _STEP  # bisect for the next change
            while last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if _find_offset(zone, middle) == at_start else (first, middle)
            changes.append((last, _find_offset(zone, last)))
    return tuple(changes)


def _find_offset(zone: ZoneInfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return offset // timedelta(seconds=1) if offset is not None else 0
