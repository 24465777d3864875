"""Gaps: runs of skipped offsets, each with the reason why raw has no record of them.

A hole lies between the frontier and the reach of a Kafka partition. The broker's answers cut a hole into gaps. Only
`lost` and `expired` are findings: the other offsets never held a record for a reader at the pipeline's isolation level.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from onceover.model.offsets import OffsetRange, intersect, subtract


class Reason(StrEnum):
    """Why the offsets of a gap are in no window file. The values are what the ledger, the logs and the UI show."""

    LOST = "lost"  # the broker delivers records there
    EXPIRED = "expired"  # below the log's start, beyond its end, or of a deleted topic
    ABORTED = "aborted"  # only a reader of uncommitted records gets records there
    COMPACTED = "compacted"
    MARKER = "control marker"

    @property
    def is_loss(self) -> bool:
        return self in (Reason.LOST, Reason.EXPIRED)


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """A run of skipped offsets with one reason."""

    offsets: OffsetRange
    reason: Reason

    def __str__(self) -> str:
        return f"{self.offsets} {self.reason}"


def join_near(ranges: Iterable[OffsetRange], near: int) -> tuple[tuple[OffsetRange, ...], ...]:
    """Return the disjoint ranges in order, in groups of one Kafka partition with at most `near` offsets between two."""
    groups: list[list[OffsetRange]] = []
    for each in sorted(ranges):
        last = groups[-1][-1] if groups else None
        if last is not None and last.source == each.source and each.start - last.end <= near:
            groups[-1].append(each)
        else:
            groups.append([each])
    return tuple(map(tuple, groups))


def merge_losses(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return the losses among the gaps, in order. Losses of one reason that are apart only by gaps without a record (a
    transaction's marker) are one: a hole in a transactional topic has as many runs as transactions."""
    merged: list[Gap] = []
    last: Gap | None = None
    is_unbroken = False  # from the last loss to the last gap
    for gap in sorted(gaps):
        adjoins = (
            last is not None and last.offsets.source == gap.offsets.source and last.offsets.end == gap.offsets.start
        )
        is_unbroken, last = is_unbroken and adjoins, gap
        if not gap.reason.is_loss:
            continue
        if is_unbroken and merged[-1].reason is gap.reason:
            whole = OffsetRange(gap.offsets.source, merged[-1].offsets.start, gap.offsets.end)
            merged[-1] = Gap(whole, gap.reason)
        else:
            merged.append(gap)
        is_unbroken = True
    return tuple(merged)


def classify_gaps(
    inside: OffsetRange, delivered: Sequence[OffsetRange], uncommitted: Sequence[OffsetRange], compacted: bool
) -> tuple[Gap, ...]:
    """Return the gaps of a range within the log: `delivered` are the runs that a reader at the pipeline's isolation
    level gets, `uncommitted` those of a reader of uncommitted records. Both are disjoint and in order, and may reach
    beyond the range."""
    lost = intersect(_select_overlapping(delivered, inside), [inside])
    aborted = subtract(intersect(_select_overlapping(uncommitted, inside), [inside]), lost)
    empty = subtract([inside], [*lost, *aborted])
    by_reason = {Reason.LOST: lost, Reason.ABORTED: aborted, Reason.COMPACTED if compacted else Reason.MARKER: empty}
    return tuple(sorted(Gap(each, reason) for reason, ranges in by_reason.items() for each in ranges))


def _select_overlapping(runs: Sequence[OffsetRange], inside: OffsetRange) -> Sequence[OffsetRange]:
    """Return those of the disjoint runs, in order, that overlap the range."""
    first = bisect_right(runs, inside.start, key=lambda run: run.end)
    return runs[first : bisect_left(runs, inside.end, key=lambda run: run.start)]
