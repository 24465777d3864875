"""Steps 3 and 4 of a batch: append its records to their files and add them to the aggregates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from onceover.fault_points import FaultPoint, Step
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import increment, stage_name
from onceover.model.batch import Increment, Landing, RangeRead


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch has appended: its ranges as they were delivered, what it adds to each window, its landings, and its
    aggregated rows, each a line of COPY text without its newline."""

    read: Sequence[RangeRead]
    increments: Sequence[Increment]
    landings: Sequence[Landing]
    rows: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class CountedBatch:
    """A batch's ranges and landings, and when its append ended, in seconds of the monotonic clock."""

    read: Sequence[RangeRead]
    landings: Sequence[Landing]
    appended_at: float


class BatchWork(Protocol):
    """One batch's Spark side, which may append once."""

    def append(self) -> BatchResult: ...


def append_and_count(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    batch_id: int,
    work: BatchWork,
    fault_point: FaultPoint,
) -> CountedBatch:
    """Carry out both steps. Raw and aggregates show the batch from then on; it counts once the batch has landed."""
    result = work.append()
    appended_at = time.monotonic()
    fault_point.stop_after(Step.APPENDED)
    rows = (line.decode() for line in result.rows)
    staged = registered.table.stage(connection, stage_name(batch_id), rows)
    increment(connection, epoch, registered.table, batch_id, result.increments, staged)
    fault_point.stop_after(Step.INCREMENTED)
    return CountedBatch(result.read, result.landings, appended_at)
