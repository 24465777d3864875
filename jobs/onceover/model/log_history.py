"""The history of a Kafka log by leader epochs: whether it still holds the records that landed.

Epochs only grow along a log, and a log is cut only under a new one. So a landed offset under which the log now has a
record of another epoch has another record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from onceover.model.batch import RangeRead
from onceover.model.offsets import OffsetRange, coalesce

Probe = Callable[[int], tuple[int, int] | None]
"""Returns offset and leader epoch of the log's first record at an offset or beyond it; None if there is none."""


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """Offsets whose records were read under one leader epoch, None for an unknown one."""

    offsets: OffsetRange
    leader_epoch: int | None


def split_by_epoch(read: RangeRead) -> tuple[EpochSpan, ...]:
    """Return the spans of one range that was read; offsets before its first record are in none."""
    return cut_at_epochs(read.offsets, read.leader_epochs) if read.digest.records else ()


def cut_at_epochs(offsets: OffsetRange, leader_epochs: Sequence[Sequence[int]]) -> tuple[EpochSpan, ...]:
    """Cut a range at the first offset of each epoch; without epochs, all of it is of an unknown one."""
    if not leader_epochs:
        return (EpochSpan(offsets, None),)
    ends = [*(first for _, first in leader_epochs[1:]), offsets.end]
    return tuple(
        EpochSpan(OffsetRange(offsets.source, first, end), epoch)
        for (epoch, first), end in zip(leader_epochs, ends, strict=True)
    )


def find_divergence(landed: Iterable[EpochSpan], log: OffsetRange, probe: Probe) -> int | None:
    """Return the first landed offset within `log` from which the log has another record; None if there is none.

    Of offsets that landed under several epochs the newest counts: it was read last. Unknown epochs are not compared.
    """
    for span in _keep_newest(landed, log):
        if (differs := _find_first_other(span, probe)) is not None:
            return differs
    return None


def find_overlaps(read: Iterable[EpochSpan], landed: Iterable[EpochSpan]) -> tuple[OffsetRange, ...]:
    """Return the offsets that both hold under different epochs, or under one that is unknown."""
    others = list(landed)
    return coalesce(
        OffsetRange(a.offsets.source, max(a.offsets.start, b.offsets.start), min(a.offsets.end, b.offsets.end))
        for a in read
        for b in others
        if a.offsets.overlaps(b.offsets) and (a.leader_epoch is None or a.leader_epoch != b.leader_epoch)
    )


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
    """Return disjoint spans of known epochs, clipped to the log, in order of offsets."""
    kept: list[EpochSpan] = []
    covered: tuple[OffsetRange, ...] = ()
    known = [(span.leader_epoch, span.offsets) for span in landed if span.leader_epoch is not None]
    for epoch, offsets in sorted(known, key=lambda item: -item[0]):
        start, end = max(offsets.start, log.start), min(offsets.end, log.end)
        if offsets.source != log.source or start >= end:
            continue
        for gap in _subtract(OffsetRange(log.source, start, end), covered):
            kept.append(EpochSpan(gap, epoch))
        covered = coalesce((*covered, OffsetRange(log.source, start, end)))
    return sorted(kept, key=lambda span: span.offsets)


def _subtract(whole: OffsetRange, covered: Sequence[OffsetRange]) -> Iterable[OffsetRange]:
    at = whole.start
    for piece in covered:
        if piece.end <= at or piece.start >= whole.end:
            continue
        if piece.start > at:
            yield OffsetRange(whole.source, at, piece.start)
        at = max(at, piece.end)
    if at < whole.end:
        yield OffsetRange(whole.source, at, whole.end)
