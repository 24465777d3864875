"""Finds the offsets that no reader gets, by reads in processes of their own: never one that can be read.

Where a process ends without getting any further, by an error about the batch, because the batch arrives whole again
and again and gives no record, for lack of memory or by a signal, the next offset cannot be read. Slowness of a broker,
its quota or a link proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from time import monotonic
from typing import Final

from onceover.errors import UnreadableRecordError
from onceover.kafka.child_read import read_apart
from onceover.kafka.reader import KafkaSource
from onceover.model.offsets import OffsetRange
from onceover.model.stopped_range import StoppedRange

SEARCH_SECONDS: Final = 30.0
"""For the search of the end. Offsets behind what was proved by then are found once those before are decided on."""

Read = Callable[[int, int], tuple[int, UnreadableRecordError | None]]
"""Reads `[start, end)`: returns the offset that it reached, and why it got no further; None at the end."""


def find_unreadable(source: KafkaSource, offsets: OffsetRange, log_end: int) -> StoppedRange | None:
    """Return the first offsets of the range that no reader gets, up to the next that one does, or to the end of the
    log; fewer where the search takes longer than SEARCH_SECONDS. None if all of the range can be read. Raises
    TransientError if Kafka does not answer, or does not hold it."""
    read = partial(_read, source, offsets.source.kafka_partition)
    at = offsets.start
    while at < offsets.end:
        reached, failure = read(at, offsets.end)
        if reached == at and failure and (failure := explain(read, at)):
            end = find_end(read, at, failure, log_end, _start_clock())
            return StoppedRange(OffsetRange(offsets.source, at, end), str(failure))
        at = max(reached, at + 1)
    return None


def is_unreadable(source: KafkaSource, kafka_partition: int, offset: int) -> bool:
    """Return whether no reader gets that offset. Raises as `find_unreadable`."""
    return explain(partial(_read, source, kafka_partition), offset) is not None


def _start_clock() -> Callable[[], bool]:
    until = monotonic() + SEARCH_SECONDS
    return lambda: monotonic() > until


def explain(read: Read, offset: int) -> UnreadableRecordError | None:
    """Return why an offset cannot be read, None if it can. A process that died may have died of the batch behind, which
    its client fetched at once, before it could say that it got the record: one more read that gets it is enough."""
    failure = read(offset, offset + 1)[1]
    return read(offset, offset + 1)[1] if failure is not None and failure.batch is None else failure


def find_end(read: Read, bad: int, failure: UnreadableRecordError, log_end: int, is_over: Callable[[], bool]) -> int:
    """Return the first offset after `bad` that can be read, `log_end` if there is none; once it `is_over`, the end of
    those that are known to fail."""
    end, following = bad, failure
    while True:
        end = _find_batch_end(read, end, following, log_end, is_over)
        if end == log_end or is_over() or (found := explain(read, end)) is None:
            return end
        following = found


def _find_batch_end(
    read: Read, bad: int, failure: UnreadableRecordError, log_end: int, is_over: Callable[[], bool]
) -> int:
    """Return the end of the offsets from `bad` on that fail with the same batch: those between two of them do too."""
    known, other, step = bad, log_end, 1
    while failure.batch is not None and other - known > 1 and not is_over():
        middle = known + min(step, (other - known) // 2)
        found = explain(read, middle)
        if found is not None and found.batch == failure.batch:
            known, step = middle, 2 * step
        else:
            other = middle
    return known + 1


def _read(source: KafkaSource, kafka_partition: int, start: int, end: int) -> tuple[int, UnreadableRecordError | None]:
    """Read `[start, end)` in a process, as `Read` says."""
    reached = start
    try:
        with closing(read_apart(source, kafka_partition, start, end)) as batches:
            for batch in batches:
                reached = batch.column("offset")[-1].as_py() + 1
    except UnreadableRecordError as error:
        reached = max(reached, error.offset or 0)
        if reached < end:  # what it read ahead of another range is not of this one
            return reached, error
    return end, None
