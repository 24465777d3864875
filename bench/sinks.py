"""What a batch's rows and landings take in the ledger by the transactional sink, beside the appending one, and how long
another transaction, such as a repair that publishes, waits for a window's row meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from psycopg import sql

from bench import large_ledger
from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address
from onceover.fault_points import FaultPoint
from onceover.ingest.batch_steps import BatchResult, StagedBatch
from onceover.ingest.sinks import SINKS, Sink
from onceover.ledger import batches, drivers, frontiers
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection, connect
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import stage_name
from onceover.model.batch import Increment, Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCE = KafkaPartition("0a1b2c3d", 0)
KINDS = 10
RECORDS = 20  # of each window and batch
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
BATCHES = 20  # in one measurement
GOAL = 1.25


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    rows: list[Row] = []
    with connect(address("postgres"), "bench") as connection, connect(address("postgres"), "bench") as other:
        for windows in (1, 7, 700):
            transactional = _Writer.open(connection, "transactional", windows)
            append = _Writer.open(connection, "append", windows)
            ours, peer = alternate(partial(transactional.measure, other), partial(append.measure, other), runs())
            correct = transactional.is_right() and append.is_right()
            of_ours, of_peer = middle(ours), middle(peer)
            rows.append(Row(f"rows and landings of a batch over {windows} windows", 1000 * of_ours, 1000 * of_peer,
                            "the sink append", "ms", of_ours / of_peer, f"{GOAL}", of_ours / of_peer <= GOAL, correct,
                            runs()))  # fmt: skip
            waits, of_append = 1000 * transactional.longest, 1000 * append.longest
            rows.append(Row(f"longest wait for a row of {windows} windows", waits, of_append, "the sink append", "ms",
                            waits / of_append, "1000 ms", waits <= 1000, correct, runs()))  # fmt: skip
    return rows, [f"each batch has {RECORDS} records and {KINDS} rows a window; {BATCHES} batches a run"]


@dataclass(slots=True)
class _Writer:
    """One pipeline's driver, which writes the same batch over and over, at further offsets."""

    connection: Connection
    known: RegisteredPipeline
    epoch: Epoch
    name: str
    sink: Sink
    windows: int
    batches: int = 0
    longest: float = field(default=0.0)  # seconds that the other transaction waited for a row

    @classmethod
    def open(cls, connection: Connection, sink: str, windows: int) -> _Writer:
        known = register_pipeline(connection, large_ledger.pipeline(f"bench_{sink}_{windows}"), COLUMNS)
        epoch = drivers.acquire(connection, known.name, "bench")
        frontiers.register_kafka_partitions(connection, epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 2**40})
        return cls(connection, known, epoch, sink, SINKS[sink](connection, epoch), windows)

    def measure(self, other: Connection) -> float:
        """Write batches, and return the mean seconds of one."""
        took = 0.0
        with self._wait_for_rows(other):
            for _ in range(BATCHES):
                took += self._write()
        return took / BATCHES

    def _write(self) -> float:
        offsets = OffsetRange(
            SOURCE, self.batches * self.windows * RECORDS, (self.batches + 1) * self.windows * RECORDS
        )
        one, length = Digest(RECORDS, 1, 2, 3, 4), timedelta(minutes=self.known.contract.window_minutes)
        starts = [large_ledger.start_of(n) for n in range(self.windows)]
        at = self.batches * 1_000
        landings = [Landing(start, None, at, at + 1_000, True, (LandingPart(SOURCE, one),)) for start in starts]
        read = [RangeRead(offsets, sum_digests([one] * self.windows), starts[-1])]
        result = BatchResult(read, [Increment(start, start + length, one) for start in starts], landings, ())
        lines = [f"{s:%Y-%m-%d %H:%M:%S+00}\tkind-{k}\t{RECORDS // KINDS}" for s in starts for k in range(KINDS)]
        batch_id = batches.begin(self.connection, self.epoch, 1, [offsets], 0.0, self.name)
        staged = self.known.table.stage(self.connection, stage_name(batch_id), lines)
        began = time.monotonic()
        self.sink.write(
            StagedBatch(batch_id, self.known.table, result, staged, began),
            lambda: batches.land_batch(self.connection, self.epoch, batch_id, read, landings),
            FaultPoint(),
        )
        self.batches += 1
        return time.monotonic() - began

    @contextmanager
    def _wait_for_rows(self, other: Connection) -> Iterator[None]:
        """Lock the first window's row again and again, as a repair does that publishes it; note the longest wait."""
        ended = threading.Event()

        def lock() -> None:
            while not ended.is_set():
                began = time.monotonic()
                with other.transaction():
                    other.execute(
                        'SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = %s FOR UPDATE',
                        [self.known.name, large_ledger.start_of(0)],
                    )
                self.longest = max(self.longest, time.monotonic() - began)
                ended.wait(0.002)

        thread = threading.Thread(target=lock)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def is_right(self) -> bool:
        """Return whether every window's rows count each record of every batch once."""
        query = sql.SQL("SELECT window_start, sum(events) AS n FROM {} GROUP BY 1").format(self.known.table.table)
        counted = {row["window_start"]: row["n"] for row in self.connection.execute(query)}
        return counted == {large_ledger.start_of(n): self.batches * RECORDS for n in range(self.windows)}
