"""The groups in which a repair reads and publishes its windows: a repair that is killed loses the last group's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onceover.model.claim import ClaimedWindow

MOST_WINDOWS = 2_000
RECORDS_A_CORE = 2_000_000  # some seconds of reading


def group_windows(
    claimed: Sequence[ClaimedWindow], most_records: int, most_windows: int = MOST_WINDOWS
) -> Iterator[list[ClaimedWindow]]:
    """Yield the windows in their order, in groups of at most `most_windows` and, unless of a single window,
    `most_records` that landed."""
    group: list[ClaimedWindow] = []
    size = 0
    for window in claimed:
        records = count_records(window)
        if group and (len(group) == most_windows or size + records > most_records):
            yield group
            group, size = [], 0
        group.append(window)
        size += records
    if group:
        yield group


def count_records(window: ClaimedWindow) -> int:
    """Return the number of records that landed in the window, those that landed twice counted twice."""
    return sum(digest.records for landing in window.landings for _, digest in landing.parts)
