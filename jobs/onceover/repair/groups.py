"""The groups in which a repair reads and publishes its windows: a repair that is killed loses the last group's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onceover.model.claim import ClaimedWindow

MOST_WINDOWS = 500
MOST_RECORDS = 50_000_000


def group_windows(
    claimed: Sequence[ClaimedWindow], most_windows: int = MOST_WINDOWS, most_records: int = MOST_RECORDS
) -> Iterator[list[ClaimedWindow]]:
    """Yield the windows in their order, in groups of at most `most_windows` and, unless of a single window,
    `most_records` that landed."""
    group: list[ClaimedWindow] = []
    size = 0
    for window in claimed:
        records = sum(digest.records for landing in window.landings for _, digest in landing.parts)
        if group and (len(group) == most_windows or size + records > most_records):
            yield group
            group, size = [], 0
        group.append(window)
        size += records
    if group:
        yield group
