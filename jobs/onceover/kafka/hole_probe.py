"""The reasons of a hole, found by reading what the broker still delivers, at each isolation level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

import numpy as np

from onceover.kafka.guarded_read import read_with_care
from onceover.kafka.log_bounds import clip_to_held
from onceover.kafka.reader import KafkaSource, LogReader
from onceover.kafka.topic import TopicFacts
from onceover.model.gap import Gap, Reason, classify_gaps, join_near
from onceover.model.offsets import OffsetRange, subtract

UNCOMMITTED = "read_uncommitted"
NEAR = 5_000
"""Offsets that are read faster than another read begins."""


def find_gaps(
    source: KafkaSource, facts: TopicFacts, holes: Iterable[OffsetRange], compacted: bool, most: int | None = None
) -> tuple[Gap, ...]:
    """Return gaps that hold every offset of the holes exactly once, in order. Read what the log still has of the holes,
    together with what landed between near ones, at most `most` offsets; what is not read counts as lost. Keep runs of
    offsets only. Raise as `LogReader.read`, also if the log is cut or recreated meanwhile: call again then."""
    gaps: list[Gap] = []
    held: list[OffsetRange] = []
    for hole in holes:
        inside = clip_to_held(hole, facts)
        gaps += (Gap(piece, Reason.EXPIRED) for piece in subtract([hole], [inside]))
        held += [inside] if len(inside) else []
    left = most
    with closing(LogReader(source)) as reader, closing(LogReader(replace(source, isolation=UNCOMMITTED))) as every:
        for group in join_near(held, NEAR):
            end = group[-1].end if left is None else min(group[-1].end, group[0].start + left)
            span = OffsetRange(group[0].source, group[0].start, end)
            gaps += _explain(reader, every, span, group, compacted)
            if left is not None:
                left = max(0, left - max(len(span), NEAR))
    return tuple(sorted(gaps))


def find_empty(source: KafkaSource, facts: TopicFacts, holes: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the offsets of these holes that the log holds, without a record for a reader. Raise as
    `LogReader.read`."""
    empty: list[OffsetRange] = []
    with closing(LogReader(source)) as reader:
        for group in join_near(filter(len, (clip_to_held(hole, facts) for hole in holes)), NEAR):
            span = OffsetRange(group[0].source, group[0].start, group[-1].end)
            empty += subtract(group, _read_runs(reader, span, group))
    return tuple(empty)


def _explain(
    reader: LogReader, every: LogReader, span: OffsetRange, holes: Sequence[OffsetRange], compacted: bool
) -> Iterator[Gap]:
    """Yield the gaps of these holes, of which the span is read; the rest counts as lost. `every` reads uncommitted
    records too."""
    delivered = _read_runs(reader, span, holes)
    is_all_delivered = sum(map(len, delivered)) == len(span)
    uncommitted: tuple[OffsetRange, ...] = ()
    if not is_all_delivered and reader.source != every.source:
        uncommitted = _read_runs(every, span, holes)
    for hole in holes:
        end = max(hole.start, min(hole.end, span.end))
        read, unread = OffsetRange(hole.source, hole.start, end), OffsetRange(hole.source, end, hole.end)
        if len(read):
            yield from classify_gaps(read, delivered, uncommitted, compacted)
        if len(unread):
            yield Gap(unread, Reason.LOST)


def _read_runs(reader: LogReader, inside: OffsetRange, holes: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return unbroken runs of the delivered offsets, in order. Pass over offsets between the holes that no reader
    gets."""
    runs: list[OffsetRange] = []
    beside = subtract(reader.source.unreadable, holes)
    read = (read_with_care(reader, r.source.kafka_partition, r.start, r.end) for r in subtract([inside], beside))
    for batch in chain.from_iterable(read):
        offsets = batch.column("offset").to_numpy()
        for piece in np.split(offsets, np.flatnonzero(np.diff(offsets) > 1) + 1):
            start, end = int(piece[0]), int(piece[-1]) + 1
            if runs and runs[-1].end == start:  # from one Arrow batch to the next
                start = runs.pop().start
            runs.append(OffsetRange(inside.source, start, end))
    return tuple(runs)
