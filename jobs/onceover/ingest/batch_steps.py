"""Step 3 of a batch: append its records to their files, and stage its rows for a sink."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onceover.fault_points import FaultPoint, Step
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.increments import stage_name
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
class StagedBatch:
    """A batch whose records are appended, and of whose rows `staged` wait in the stage of `table`, with the columns of
    the batch's own contract; its append ended `appended_at`, in seconds of the monotonic clock."""

    batch_id: int
    table: AggregateTable
    result: BatchResult
    staged: int
    appended_at: float


def append_and_stage(
    connection: Connection,
    registered: RegisteredPipeline,
    batch_id: int,
    append: Callable[[], BatchResult],
    fault_point: FaultPoint,
) -> StagedBatch:
    """Append the batch to raw, where it counts for nothing yet, and stage its rows, which no reader sees."""
    result = append()
    appended_at = time.monotonic()
    fault_point.stop_after(Step.APPENDED)
    rows = (line.decode() for line in result.rows)
    staged = registered.table.stage(connection, stage_name(batch_id), rows)
    return StagedBatch(batch_id, registered.table, result, staged, appended_at)
