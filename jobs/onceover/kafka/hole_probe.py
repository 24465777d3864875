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


def find_gaps(source: KafkaSource, facts: TopicFacts, hole: OffsetRange, compacted: bool) -> tuple[Gap, ...]:
    """Return gaps that hold every offset of the hole exactly once, in order. Read what the log still has of the hole;
    keep runs of offsets only. Raise as `read_range`, also if the log is cut or recreated meanwhile: call again then."""
    if hole.source.generation != facts.generation or hole.source.kafka_partition not in facts.end:
        return (Gap(hole, Reason.EXPIRED),)
    kafka_partition = hole.source.kafka_partition
    expired, inside = clip_to_log(hole, facts.earliest[kafka_partition], facts.end[kafka_partition])
    delivered = list(_read_runs(source, inside))
    is_all_delivered = sum(map(len, delivered)) == len(inside)
    uncommitted: list[OffsetRange] = []
    if not is_all_delivered and source.isolation != UNCOMMITTED:
        uncommitted = list(_read_runs(replace(source, isolation=UNCOMMITTED), inside))
    return tuple(sorted((*expired, *classify_gaps(inside, delivered, uncommitted, compacted))))


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
