"""The leader epoch of a log's records, found by reading one of them: the client library has no request for it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from onceover.errors import OffsetRangeError, TransientError, UnreadableRecordError
from onceover.kafka.guarded_read import read_guarded
from onceover.kafka.reader import READ_AHEAD, KafkaSource, LogReader
from onceover.model.offsets import OffsetRange


class LogProbe:
    """Reads single records of one Kafka partition's log below `end`, at the source's isolation level; remembers what it
    read."""

    def __init__(self, source: KafkaSource, kafka_partition: int, end: int) -> None:
        self._source, self._kafka_partition, self._end = source, kafka_partition, end
        self._log = LogReader(replace(source, one_batch_a_fetch=True))
        self._seen: dict[int, tuple[int, int] | None] = {}

    def find_epoch(self, offset: int) -> tuple[int, int] | None:
        """Return offset and leader epoch of the first record at this offset or beyond it that can be read.

        None if the log has no such record, or its records carry no epochs. Raises TransientError if the log no longer
        holds the offset, or is another topic's by now, UnreachableError if nothing arrives for the source's
        `stall_seconds`.
        """
        if offset not in self._seen:
            try:
                self._seen[offset] = self._read(offset)
            except UnreadableRecordError:
                self._seen[offset] = self._read_beyond(offset)
        return self._seen[offset]

    def close(self) -> None:
        self._log.close()

    def _read_beyond(self, offset: int) -> tuple[int, int] | None:
        """Find the end of the batch that cannot be read, by bisection, and read there."""
        bad, good, found = offset, self._end, None
        while good - bad > 1:
            middle = (bad + good) // 2
            try:
                good, found = middle, self._read(middle)
            except UnreadableRecordError:
                bad = middle
        return found

    def _read(self, offset: int) -> tuple[int, int] | None:
        for bad in self._source.unreadable:
            if bad.source.kafka_partition == self._kafka_partition and bad.start - READ_AHEAD <= offset < bad.end:
                return self._read_before(offset, bad)
        return self._read_plainly(offset)

    def _read_before(self, offset: int, bad: OffsetRange) -> tuple[int, int] | None:
        """Read a record near offsets that no reader gets, in a process of its own; if none lies before, one behind."""
        if offset < bad.start:
            with closing(read_guarded(self._source, self._kafka_partition, offset, bad.start)) as records:
                first = next(records, None)
            if first is not None:
                return _get_epoch(first)
        return self.find_epoch(bad.end)

    def _read_plainly(self, offset: int) -> tuple[int, int] | None:
        if offset >= self._end:
            return None
        try:
            first = self._read_first(offset, self._end)
        except UnreadableRecordError as error:
            if error.offset is None or error.offset <= offset:
                raise
            first = self._read_first(offset, error.offset)  # what arrived beside it can be read
            if first is None:
                raise
        return None if first is None else _get_epoch(first)

    def _read_first(self, offset: int, end: int) -> pa.RecordBatch | None:
        try:
            return next(self._log.read_at_once(self._kafka_partition, offset, end), None)
        except OffsetRangeError as error:
            raise TransientError(str(error)) from error


def _get_epoch(records: pa.RecordBatch) -> tuple[int, int] | None:
    at, epoch = records.column("offset")[0].as_py(), records.column("leader_epoch")[0].as_py()
    return None if epoch is None or epoch < 0 else (at, epoch)
