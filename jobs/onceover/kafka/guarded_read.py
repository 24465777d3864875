"""Reads near offsets that no reader gets, in a process of their own, which may die of what lies behind the range: for a
client fetches further than it is asked. What the process delivered before is delivered all the same."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

import pyarrow as pa

from onceover.kafka.child_read import read_apart
from onceover.kafka.reader import READ_AHEAD, KafkaSource, LogReader
from onceover.model.offsets import OffsetRange, intersect, subtract


def read_range(source: KafkaSource, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the records as `LogReader.read` does, and as carefully as `read_with_care`."""
    with closing(LogReader(source)) as log:
        yield from read_with_care(log, kafka_partition, start, end)


def read_with_care(log: LogReader, kafka_partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the records as `LogReader.read` does; those from which a client may read ahead to an offset that no reader
    gets, as the source says, by `read_guarded`."""
    for at, until, is_near in cut_at_unreadable(log.source, kafka_partition, start, end):
        read = partial(read_guarded, log.source) if is_near else log.read
        yield from read(kafka_partition, at, until)


def cut_at_unreadable(source: KafkaSource, kafka_partition: int, start: int, end: int) -> list[tuple[int, int, bool]]:
    """Cut [start, end) into the ranges to read plainly, and those near offsets that no reader gets, or at them."""
    known = [bad for bad in source.unreadable if bad.source.kafka_partition == kafka_partition]
    if source.one_batch_a_fetch or not known:
        return [(start, end, source.one_batch_a_fetch)] if start < end else []
    whole = [OffsetRange(known[0].source, start, end)]
    near = [OffsetRange(bad.source, max(bad.start - READ_AHEAD, 0), bad.end) for bad in known]
    pieces = [(piece, False) for piece in subtract(whole, near)] + [(piece, True) for piece in intersect(whole, near)]
    return [(piece.start, piece.end, is_near) for piece, is_near in sorted(pieces)]


def read_guarded(
    source: KafkaSource, kafka_partition: int, start: int, end: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the records as `LogReader.read` does. Where the process dies of what lies behind them, they are delivered
    all the same; where it dies before, raise UnreadableRecordError."""
    with closing(LogReader(source)) as reader:
        yield from reader.hold_last(read_apart(source, kafka_partition, start, end))
