"""A history of the ledger that the product's own functions write, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from bench.large_ledger import pipeline
from bench.ledger_history import COLUMNS, TOPIC_ID, WINDOW, History, piece_of
from onceover.detection.certify import certify_from_ledger
from onceover.detection.look import judge_windows
from onceover.ledger import batches, drivers, frontiers, increments
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import increment
from onceover.model.batch import Increment, Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import OffsetRange


class RangesRead(NamedTuple):
    """What a batch read, and its landings."""

    read: list[RangeRead]
    landings: list[Landing]


class Writer:
    """Ingest of a history without Kafka, Spark and HDFS: the calls of the ledger that a batch makes, in their order."""

    def __init__(self, connection: Connection, history: History, known: RegisteredPipeline) -> None:
        self._connection, self._history, self.known = connection, history, known
        self._landed = history.batches
        self._epoch: Epoch = drivers.acquire(connection, history.name, "test")

    @classmethod
    def of(cls, connection: Connection, history: History, known: RegisteredPipeline | None = None) -> Writer:
        """Return a writer of a new history, or one that goes on with a built one."""
        fresh = known or register_pipeline(connection, pipeline(history.name), COLUMNS)
        return cls(connection, history, fresh)

    def write(self) -> None:
        for batch in range(1, self._history.batches + 1):
            self._land(self._read(batch))
            if batch % self._history.batches_a_window == 0:
                self._close_and_certify()

    def land_next(self) -> None:
        """Land the batch after all that this writer, or the built history, has landed."""
        self._landed += 1
        self._land(self._read(self._landed))

    def land_late(self, start: datetime, records: int) -> None:
        """Land a batch of new offsets, all of them in an old window."""
        history, source = self._history, self._history.source(0)
        first = history.read_of(history.batches, 0).end
        offsets, digest = OffsetRange(source, first, first + records), Digest(records, 1, 2, 3, 4)
        at = history.read_lengths([start])[start]
        landing = Landing(start, None, at, at + 400, True, (LandingPart(source, digest),))
        self._land(RangesRead([RangeRead(offsets, digest, start, start, ((0, first),))], [landing]))

    def read_again(self, batch: int) -> int:
        """Land a batch of what another one has landed; return its ID."""
        return self._land(self._read(batch))

    def begin(self, batch: int) -> int:
        """Begin to read what another batch has landed, and land nothing; return the ID of that batch."""
        ranges = [piece.offsets for piece in self._read(batch).read]
        return batches.begin(self._connection, self._epoch, 1, ranges)

    def _land(self, batch: RangesRead) -> int:
        connection, epoch, ranges = self._connection, self._epoch, [piece.offsets for piece in batch.read]
        starts = {r.source: Start(r.start, r.start) for r in ranges}
        frontiers.register_kafka_partitions(connection, epoch, TOPIC_ID, starts, {r.source: r.end for r in ranges})
        batch_id = batches.begin(connection, epoch, 1, ranges)
        found = [Increment(x.window_start, x.window_start + WINDOW, x.digest) for x in batch.landings if x.window_start]
        lines = [f"{x.window_start.isoformat()}\ta\t{x.digest.records}" for x in found]
        staged = self.known.table.stage(connection, increments.stage_name(batch_id), lines)
        increment(connection, epoch, self.known.table, batch_id, found, staged)
        batches.land_batch(connection, epoch, batch_id, batch.read, batch.landings)
        batches.mark_committed(connection, epoch, batch_id)
        return batch_id

    def _read(self, batch: int) -> RangesRead:
        history, parts = self._history, _parts_of(batch, self._history)
        ranges = [history.read_of(batch, p) for p in range(history.kafka_partitions)]
        read = [
            RangeRead(r, sum_digests(piece_of(batch, r.source.kafka_partition, own=own) for own in parts),
                      history.moment(batch), history.moment(batch - 1), ((0, r.start),))
            for r in ranges
        ]  # fmt: skip
        return RangesRead(read, self._list_landings(batch))

    def _list_landings(self, batch: int) -> list[Landing]:
        history, size = self._history, self._history.batches_a_window
        window, place = divmod(batch - 1, size)
        at = {True: place * history.own_bytes, False: size * history.own_bytes + place * history.before_bytes}
        length = {True: history.own_bytes, False: history.before_bytes}
        return [
            Landing(
                history.start_of(window if own else window - 1), None, at[own], at[own] + length[own], True,
                tuple(LandingPart(history.source(p), piece_of(batch, p, own=own))
                      for p in range(history.kafka_partitions)),
            )
            for own in _parts_of(batch, history)
        ]  # fmt: skip

    def _close_and_certify(self) -> None:
        """Let the watermark follow, a window's length behind, and certify what it closed."""
        connection, name, length = self._connection, self._history.name, timedelta(minutes=5)
        frontiers.advance_watermark(connection, self._epoch, self._history.generation, length, timedelta(hours=1))
        seen = judge_windows(connection, name, self._history, None, every=False)
        right = [(j.evidence, j.findings) for j in seen.judgements if j.is_right]
        assert len(right) == len(seen.judgements)
        certify_from_ledger(connection, self.known, right, "bench", "bench")


def _parts_of(batch: int, history: History) -> Sequence[bool]:
    """Return whether the batch lands in its own window, for each window that it lands in, in their order."""
    return (True,) if batch <= history.batches_a_window else (False, True)
