"""The history of a Kafka log by leader epochs: whether it still holds the records that landed.

Epochs only grow along a log, and a log is cut only under a new one. So a landed offset under which the log now has a
record of another epoch has another record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from onceover.errors import TransientError, UnreachableError
from onceover.model.offsets import OffsetRange, coalesce, intersect, subtract

NO_EPOCH: Final = -1
"""The epoch of offsets that had no record when they were read, or records of an old format, which carry none."""

Probe = Callable[[int], tuple[int, int] | None]
"""Returns offset and leader epoch of the log's first record at an offset or beyond it; None if there is none."""


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """Offsets whose records were read under one leader epoch, None for an unknown one."""

    offsets: OffsetRange
    leader_epoch: int | None


def order_epochs(seen: Mapping[int, tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return each leader epoch with its first offset, in the order of the offsets; none if records that carry no epoch
    are among such as do. `seen` are the first and the last offset of a read by epoch. Raise TransientError where other
    epochs overlap: the log was cut while it was read."""
    in_order = sorted((first, last, epoch) for epoch, (first, last) in seen.items())
    if any(low[1] >= high[0] for low, high in pairwise(in_order)):
        if NO_EPOCH in seen:
            return ()
        raise TransientError(
            f"the log was cut while offsets {in_order[0][0]:,} and later ones were read; the batch does not count and "
            "is read again"
        )
    return tuple((epoch, first) for first, _, epoch in in_order)


def cut_at_epochs(offsets: OffsetRange, leader_epochs: Sequence[Sequence[int]]) -> tuple[EpochSpan, ...]:
    """Cut a range at the first offset of each epoch but the first; without epochs, all of it is of an unknown one."""
    if not leader_epochs:
        return (EpochSpan(offsets, None),)
    bounds = [offsets.start, *(first for _, first in leader_epochs[1:]), offsets.end]
    return tuple(
        EpochSpan(OffsetRange(offsets.source, low, high), epoch)
        for (low, high), (epoch, _) in zip(pairwise(bounds), leader_epochs, strict=True)
    )


def join_spans(spans: Iterable[EpochSpan]) -> list[EpochSpan]:
    """Join each span with the one before it, if that ends where it starts and its epoch is the same; offsets without
    records join any."""
    joined: list[EpochSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.offsets.source, last.offsets.end) == (span.offsets.source, span.offsets.start)
            and span.leader_epoch in (NO_EPOCH, last.leader_epoch)
        ):
            whole = OffsetRange(last.offsets.source, last.offsets.start, span.offsets.end)
            joined[-1] = EpochSpan(whole, last.leader_epoch)
        else:
            joined.append(span)
    return joined


def find_divergence(landed: Iterable[EpochSpan], current: Iterable[OffsetRange], probe: Probe) -> int | None:
    """Return the first of the `current` offsets from which on the log's next record has a leader epoch under which none
    `landed` there; None if there is none. An unknown epoch is any. Reads two records for each change of epochs, however
    many ranges without records divide what landed."""
    groups = _group_by_epoch(join_spans(sorted(landed, key=lambda each: each.offsets.start)))
    by_epoch: dict[int, tuple[OffsetRange, ...]] = {}
    for piece in current:
        at = piece.start
        while at < piece.end and (found := probe(at)) is not None and found[0] < piece.end:
            offset, epoch = found
            if epoch not in by_epoch:
                by_epoch[epoch] = coalesce([*groups.get(epoch, ()), *groups.get(None, ())])
            ranges = by_epoch[epoch]
            number = bisect_right(ranges, offset, key=lambda each: each.start) - 1
            if number < 0 or ranges[number].end <= offset:
                return at
            at = _find_other(probe, offset, epoch, min(ranges[number].end, piece.end))
    return None


def skip_unreadable(probe: Probe, unreadable: Sequence[OffsetRange]) -> Probe:
    """Return the probe that goes on behind these ranges where their records never arrive."""

    def find_epoch(offset: int) -> tuple[int, int] | None:
        try:
            return probe(offset)
        except UnreachableError:
            beyond = next((each.end for each in unreadable if each.start <= offset < each.end), None)
            if beyond is None:
                raise
            return probe(beyond)

    return find_epoch


def intersect_spans(spans: Iterable[EpochSpan], others: Iterable[EpochSpan]) -> list[EpochSpan]:
    """Return the readings of `spans` that `others` have: the same offsets under the same leader epoch. An epoch that is
    unknown, or NO_EPOCH, is the same as any."""
    listed = list(others)
    return [
        EpochSpan(piece, epoch)
        for epoch, ranges in _group_by_epoch(spans).items()
        for piece in intersect(ranges, _list_same(listed, epoch))
    ]


def subtract_spans(spans: Iterable[EpochSpan], others: Iterable[EpochSpan]) -> list[EpochSpan]:
    """Return the readings of `spans` that `others` do not have, as `intersect_spans` compares them."""
    listed = list(others)
    return [
        EpochSpan(piece, epoch)
        for epoch, ranges in _group_by_epoch(spans).items()
        for piece in subtract(ranges, _list_same(listed, epoch))
    ]


def _group_by_epoch(spans: Iterable[EpochSpan]) -> dict[int | None, list[OffsetRange]]:
    groups: dict[int | None, list[OffsetRange]] = {}
    for span in spans:
        groups.setdefault(span.leader_epoch, []).append(span.offsets)
    return groups


def _list_same(spans: Sequence[EpochSpan], epoch: int | None) -> list[OffsetRange]:
    any_epoch = (None, NO_EPOCH)
    is_any = epoch in any_epoch
    return [each.offsets for each in spans if is_any or each.leader_epoch in any_epoch or each.leader_epoch == epoch]


def _find_other(probe: Probe, low: int, epoch: int, end: int) -> int:
    """Return, by bisection, the first offset from `low` to before `end` from which on the next record is of another
    epoch, or there is none; `end` without such an offset. The record at `low` is of this epoch."""

    def is_other(offset: int) -> bool:
        found = probe(offset)
        return found is None or found[1] != epoch

    high = end - 1
    if not is_other(high):
        return end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_other(middle) else (middle, high)
    return high
