"""The groups in which a repair claims, reads and publishes its windows: one that is killed loses its last group's work,
and holds no window of a later group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

MOST_WINDOWS = 2_000
RECORDS_A_CORE = 2_000_000  # some seconds of reading
W = TypeVar("W")


def group_windows(
    windows: Iterable[W], count: Callable[[W], int], most_records: int, most_windows: int | None = None
) -> Iterator[list[W]]:
    """Yield the windows in their order, in groups of at most `most_windows`, by default MOST_WINDOWS, and, unless of a
    single window, `most_records` of those that `count` says landed."""
    most_windows = most_windows or MOST_WINDOWS
    group: list[W] = []
    size = 0
    for window in windows:
        records = count(window)
        if group and (len(group) == most_windows or size + records > most_records):
            yield group
            group, size = [], 0
        group.append(window)
        size += records
    if group:
        yield group
