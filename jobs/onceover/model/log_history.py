"""The history of a Kafka log by leader epochs: whether it still holds the records that landed.

Epochs only grow along a log, and a log is cut only under a new one. So a landed offset under which the log now has a
record of another epoch has another record.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from onceover.errors import UnreachableError
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
    """Return each leader epoch with its first offset, in the order of the offsets. `seen` are the first and the last
    offset of a read by epoch; where they overlap, leaders changed during the read, and the epochs count as unknown."""
    in_order = sorted((first, last, epoch) for epoch, (first, last) in seen.items())
    if any(low[1] >= high[0] for low, high in pairwise(in_order)):
        return ()
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


def find_divergence(landed: Iterable[EpochSpan], log: OffsetRange, probe: Probe) -> int | None:
    """Return the first landed offset within `log` from which the log has another record; None if there is none.

    `landed` is in the order in which the spans were read: of several reads of an offset the last one counts. Unknown
    epochs are not compared.
    """
    for span in _keep_newest(landed, log):
        if span.leader_epoch is not None and (differs := _find_first_other(span, probe)) is not None:
            return differs
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


def find_unknown(landed: Iterable[EpochSpan], log: OffsetRange) -> tuple[OffsetRange, ...]:
    """Return the landed offsets within `log` that were read under no known epoch, in order: `find_divergence` does not
    compare them."""
    return coalesce(span.offsets for span in _keep_newest(landed, log) if span.leader_epoch is None)


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


def _find_first_other(span: EpochSpan, probe: Probe) -> int | None:
    """Return the first offset of the span at or after which its first record is of another epoch, by bisection."""

    def is_other(offset: int) -> bool:
        found = probe(offset)
        return found is not None and found[1] != span.leader_epoch

    low, high = span.offsets.start, span.offsets.end - 1
    if is_other(low):
        high = low
    elif not is_other(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_other(middle) else (middle + 1, high)
    found = probe(high)
    return high if found is not None and found[0] < span.offsets.end else None


def _keep_newest(landed: Iterable[EpochSpan], log: OffsetRange) -> list[EpochSpan]:
    """Return disjoint spans, each offset under the last known epoch of its reads, else under an unknown one, clipped to
    the log, in order of offsets."""
    kept: list[EpochSpan] = []
    starts: list[int] = []  # of what later reads cover, in order and disjoint, as `ends`
    ends: list[int] = []
    newest_first = list(landed)[::-1]
    for span in sorted(newest_first, key=lambda span: span.leader_epoch is None):
        start, end = max(span.offsets.start, log.start), min(span.offsets.end, log.end)
        if span.offsets.source != log.source or start >= end:
            continue
        first, beyond = bisect_left(ends, start), bisect_right(starts, end)
        covered = [*zip(starts[first:beyond], ends[first:beyond], strict=True)]
        at = start
        for low, high in (*covered, (end, end)):
            if at < min(low, end):
                kept.append(EpochSpan(OffsetRange(log.source, at, min(low, end)), span.leader_epoch))
            at = max(at, high)
        starts[first:beyond] = [min([start, *starts[first : min(first + 1, beyond)]])]
        ends[first:beyond] = [max([end, *(high for _, high in covered)])]
    return join_spans(sorted(kept, key=lambda span: span.offsets))
