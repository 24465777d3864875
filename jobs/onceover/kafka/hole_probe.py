"""The reasons of a hole, found by reading what the broker still delivers, at each isolation level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from onceover.kafka.reader import KafkaSource, read_range
from onceover.kafka.topic import TopicFacts
from onceover.model.gap import Gap, Reason, classify_gaps, clip_to_log
from onceover.model.offsets import OffsetRange

UNCOMMITTED = "read_uncommitted"


def find_held(facts: TopicFacts, hole: OffsetRange) -> tuple[OffsetRange, ...]:
    """Return the part of the hole that the log still has, none if it has expired. Read no record."""
    if not _is_of_log(facts, hole):
        return ()
    at = hole.source.kafka_partition
    _, inside = clip_to_log(hole, facts.earliest[at], facts.end[at])
    return (inside,) if len(inside) else ()


def find_gaps(
    source: KafkaSource, facts: TopicFacts, hole: OffsetRange, compacted: bool, most: int | None = None
) -> tuple[Gap, ...]:
    """Return gaps that hold every offset of the hole exactly once, in order. Read what the log still has of the hole,
    at most the first `most` offsets; the others count as lost. Keep runs of offsets only. Raise as `read_range`, also
    if the log is cut or recreated meanwhile: call again then."""
    if not _is_of_log(facts, hole):
        return (Gap(hole, Reason.EXPIRED),)
    kafka_partition = hole.source.kafka_partition
    expired, held = clip_to_log(hole, facts.earliest[kafka_partition], facts.end[kafka_partition])
    inside = OffsetRange(held.source, held.start, held.end if most is None else min(held.end, held.start + most))
    unread = OffsetRange(held.source, inside.end, held.end)
    delivered = list(_read_runs(source, inside))
    is_all_delivered = sum(map(len, delivered)) == len(inside)
    uncommitted: list[OffsetRange] = []
    if not is_all_delivered and source.isolation != UNCOMMITTED:
        uncommitted = list(_read_runs(replace(source, isolation=UNCOMMITTED), inside))
    rest = (Gap(unread, Reason.LOST),) if len(unread) else ()
    return tuple(sorted((*expired, *classify_gaps(inside, delivered, uncommitted, compacted), *rest)))


def _is_of_log(facts: TopicFacts, hole: OffsetRange) -> bool:
    return hole.source.generation == facts.generation and hole.source.kafka_partition in facts.end


def _read_runs(source: KafkaSource, inside: OffsetRange) -> Iterator[OffsetRange]:
    """Yield unbroken runs of the delivered offsets, in order; a run may continue from one Arrow batch to the next."""
    run: OffsetRange | None = None
    for batch in read_range(source, inside.source.kafka_partition, inside.start, inside.end):
        offsets = batch.column("offset").to_numpy()
        for piece in np.split(offsets, np.flatnonzero(np.diff(offsets) > 1) + 1):
            start, end = int(piece[0]), int(piece[-1]) + 1
            if run is not None and run.end == start:
                run = OffsetRange(inside.source, run.start, end)
                continue
            if run is not None:
                yield run
            run = OffsetRange(inside.source, start, end)
    if run is not None:
        yield run
