"""Steps 3 and 4 of a batch, wherever its records come from: appended to their files, and added to the aggregates."""

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
    """What Spark does for one batch. Each method may be called once, in this order; `close` always."""

    def read(self) -> tuple[Sequence[RangeRead], Sequence[Increment]]: ...
    def append(self) -> Sequence[Landing]: ...
    def rows(self) -> Iterator[str]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """What the batch read and appended, and when each was done, by the monotonic clock."""

    read: Sequence[RangeRead]
    landings: Sequence[Landing]
    read_at: float
    appended_at: float


def carried_out(
    connection: Connection,
    epoch: Epoch,
    known: RegisteredPipeline,
    batch_id: int,
    work: BatchWork,
    fault_point: FaultPoint,
) -> CarriedOut:
    """Both steps. Nothing of it counts before the batch has landed; what the aggregates count already shows then."""
    read, increments = work.read()
    read_at = time.monotonic()
    landings = work.append()
    appended_at = time.monotonic()
    fault_point.stop_after(Step.APPENDED)
    known.table.stage(connection, stage_name(batch_id), work.rows())
    increment(connection, epoch, known.table, batch_id, increments)
    fault_point.stop_after(Step.INCREMENTED)
    return CarriedOut(read, landings, read_at, appended_at)
