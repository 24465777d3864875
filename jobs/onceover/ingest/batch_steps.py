"""Steps 3 and 4 of a batch: append its records to their files and add them to the aggregates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from onceover.fault_points import FaultPoint, Step
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import increment, stage_name
from onceover.model.batch import Increment, Landing, RangeRead


class BatchWork(Protocol):
    """One batch's Spark side. Each method may be called once, in this order; `close` always."""

    def read(self) -> tuple[Sequence[RangeRead], Sequence[Increment]]: ...
    def append(self) -> Sequence[Landing]: ...
    def rows(self) -> Iterator[str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BatchResult:
    """A batch's ranges and landings, and when reading and appending ended, in seconds of the monotonic clock."""

    read: Sequence[RangeRead]
    landings: Sequence[Landing]
    read_at: float
    appended_at: float


def append_and_count(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    batch_id: int,
    work: BatchWork,
    fault_point: FaultPoint,
) -> BatchResult:
    """Carry out both steps. Raw and aggregates show the batch from then on; it counts once the batch has landed."""
    read, increments = work.read()
    read_at = time.monotonic()
    landings = work.append()
    appended_at = time.monotonic()
    fault_point.stop_after(Step.APPENDED)
    staged = registered.table.stage(connection, stage_name(batch_id), work.rows())
    increment(connection, epoch, registered.table, batch_id, increments, staged)
    fault_point.stop_after(Step.INCREMENTED)
    return BatchResult(read, landings, read_at, appended_at)
