"""Reads near offsets that no reader gets, in a process of their own, which may die of what lies behind the range: for a
client fetches further than it is asked. What the process delivered before is delivered all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

import pyarrow as pa

from onceover.errors import OnceoverError, TransientError, UnreadableRecordError
from onceover.kafka.child_read import (
    OTHER,
    TOO_LARGE,
    UNREADABLE,
    Asked,
    build_environment,
    choose_exit_code,
    take_request,
)
from onceover.kafka.reader import READ_AHEAD, KafkaSource, LogReader
from onceover.kafka.record_batch import SCHEMA
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
        yield from reader.hold_last(_receive(Asked(source, kafka_partition, start, end)))


def _receive(asked: Asked) -> Iterator[pa.RecordBatch]:
    at = asked.start
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=build_environment(),
    ) as child:  # fmt: skip
        if not (child.stdin and child.stdout and child.stderr):
            raise ValueError("a process without pipes")
        child.stdin.write(asked.write().encode())
        child.stdin.close()
        try:
            for batch in pa.ipc.open_stream(child.stdout):
                at = batch.column("offset")[-1].as_py() + 1
                yield batch
        except (pa.ArrowInvalid, OSError):  # it ended in the middle
            pass
        except GeneratorExit:  # its client may hang for ever when the process ends by itself
            child.kill()
            raise
        said = child.stderr.read().decode(errors="replace")
    # Arrow takes the end of a pipe between two batches for the end of the stream: only the exit code says which it was.
    if child.returncode == 0 or at >= asked.end:
        return
    why = said.strip().rpartition("\n")[2]
    if child.returncode == OTHER:
        raise TransientError(why)
    raise UnreadableRecordError(why if child.returncode == UNREADABLE else f"offset {at}: {TOO_LARGE}", at)


def main() -> None:
    """Write the records that standard input asks for to standard output, and the stream's end only after the range's;
    the reason to end before, if there is one, to standard error."""
    asked = take_request()
    reader = LogReader(asked.source)  # kept to the end: to close a client that reads what it cannot may hang for ever
    try:
        stream = pa.ipc.new_stream(sys.stdout.buffer, SCHEMA)
        for batch in reader.read_at_once(asked.kafka_partition, asked.start, asked.end):
            stream.write_batch(batch)
            sys.stdout.buffer.flush()
        stream.close()
    except (OnceoverError, MemoryError) as error:
        sys.stderr.write(f"\n{error or TOO_LARGE}\n")
        sys.stderr.flush()
        os._exit(choose_exit_code(error))
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
