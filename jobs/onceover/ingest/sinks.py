"""Sinks: how a batch's rows reach the aggregates that readers see, beside the landings that make the batch count.

Both are at-least-once from Kafka's side. With `append` a batch that is killed between its rows and its landings is
counted twice after its replay, until a repair; with `transactional` it is counted by both or by neither, and what has
landed is never read again. docs/sinks.md helps to choose, docs/architecture.md says how to add another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from onceover.fault_points import FaultPoint, Step
from onceover.ingest.batch_steps import StagedBatch
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import increment, insert_windows


class Sink(Protocol):
    """The writer of one pipeline's batches."""

    def write(self, batch: StagedBatch, land: Callable[[], None], fault_point: FaultPoint) -> None:
        """Add the staged rows to the aggregates and call `land` once, which makes the batch count, in the ledger alone
        (steps 4 and 5). Raises as these do; nothing of what did not commit is left."""


@dataclass(frozen=True, slots=True)
class AppendSink:
    """Rows first, in a transaction of their own: window rows are locked for two short times."""

    connection: Connection
    epoch: Epoch

    def write(self, batch: StagedBatch, land: Callable[[], None], fault_point: FaultPoint) -> None:
        increment(self.connection, self.epoch, batch.table, batch.batch_id, batch.result.increments, batch.staged)
        fault_point.stop_after(Step.INCREMENTED)
        with self.connection.transaction():
            land()


@dataclass(frozen=True, slots=True)
class TransactionalSink:
    """Rows and landings in one transaction. A COMMIT whose outcome is unknown ends the driver; the next one reads the
    ledger."""

    connection: Connection
    epoch: Epoch

    def write(self, batch: StagedBatch, land: Callable[[], None], fault_point: FaultPoint) -> None:
        increments = batch.result.increments
        with self.connection.transaction():
            insert_windows(
                self.connection, self.epoch.pipeline, batch.table, {i.window_start: i.window_end for i in increments}
            )
            land()  # first, for it locks all rows in the order of `ledger.windows`
            increment(self.connection, self.epoch, batch.table, batch.batch_id, increments, batch.staged)
            fault_point.stop_after(Step.INCREMENTED)


SINKS: Final[dict[str, Callable[[Connection, Epoch], Sink]]] = {
    "append": AppendSink,
    "transactional": TransactionalSink,
}
"""The makers of the sinks, by the names that `ingest.sink` may have."""
