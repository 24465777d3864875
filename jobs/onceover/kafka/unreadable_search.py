"""Finds the offsets that no reader gets, by reads in processes of their own: never one that can be read.

Each process prints how far it got. Where it ends without getting any further, by an error about the batch, because
the batch arrives whole again and again and gives no record, for lack of memory or by a signal, the next offset cannot
be read. Slowness of a broker, its quota or a link proves nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final

from onceover.errors import OnceoverError, TransientError
from onceover.kafka.child_read import (
    OTHER,
    TOO_LARGE,
    UNREADABLE,
    Asked,
    build_environment,
    choose_exit_code,
    is_death,
    take_request,
)
from onceover.kafka.reader import KafkaSource, LogReader
from onceover.model.offsets import OffsetRange
from onceover.model.stopped_range import StoppedRange

SEARCH_SECONDS: Final = 30.0
"""For the search of the end. Offsets behind what was proved by then are found once those before are decided on."""
READ_SECONDS: Final = 300.0
"""For one read, which goes on where it was by then; a reader gives up on a silent broker long before."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an offset cannot be read, and the first offset of its batch of Kafka's, None where that is unknown."""

    why: str
    batch: int | None = None


Read = Callable[[int, int], tuple[int, Failure | None]]
"""Reads `[start, end)`: returns the offset that it reached, and why it got no further; None at the end, or out of
time."""


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
            return StoppedRange(OffsetRange(offsets.source, at, end), failure.why)
        at = max(reached, at + 1)
    return None


def is_unreadable(source: KafkaSource, kafka_partition: int, offset: int) -> bool:
    """Return whether no reader gets that offset. Raises as `find_unreadable`."""
    return explain(partial(_read, source, kafka_partition), offset) is not None


def _start_clock() -> Callable[[], bool]:
    until = monotonic() + SEARCH_SECONDS
    return lambda: monotonic() > until


def explain(read: Read, offset: int) -> Failure | None:
    """Return why an offset cannot be read, None if it can. A process that died may have died of the batch behind, which
    its client fetched at once, before it could say that it got the record: one more read that gets it is enough."""
    failure = read(offset, offset + 1)[1]
    return read(offset, offset + 1)[1] if failure is not None and failure.batch is None else failure


def find_end(read: Read, bad: int, failure: Failure, log_end: int, is_over: Callable[[], bool]) -> int:
    """Return the first offset after `bad` that can be read, `log_end` if there is none; once it `is_over`, the end of
    those that are known to fail."""
    end, following = bad, failure
    while True:
        end = _find_batch_end(read, end, following, log_end, is_over)
        if end == log_end or is_over() or (found := explain(read, end)) is None:
            return end
        following = found


def _find_batch_end(read: Read, bad: int, failure: Failure, log_end: int, is_over: Callable[[], bool]) -> int:
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


def _read(source: KafkaSource, kafka_partition: int, start: int, end: int) -> tuple[int, Failure | None]:
    """Read `[start, end)` in a process, as `Read` says."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=Asked(source, kafka_partition, start, end).write().encode(),
            capture_output=True,
            env=build_environment(),
            timeout=READ_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        if (said := _parse(error.stdout)) and start < said[-1][0]:
            return min(said[-1][0], end), None
        raise TransientError(
            f"a process did not read offsets [{start}, {end}) of Kafka partition {kafka_partition} within "
            f"{READ_SECONDS:.0f} s; see whether the broker answers"
        ) from error
    said = _parse(done.stdout)
    reached, why, batch = said[-1] if said else (start, "", None)
    if done.returncode == 0 or reached >= end:  # what it read ahead of another range is not of this one
        return end, None
    if done.returncode == OTHER:
        raise TransientError(why)
    if done.returncode == UNREADABLE:
        return reached, Failure(why, batch)
    if is_death(done.returncode, done.stderr.decode(errors="replace")):
        return reached, Failure(TOO_LARGE)
    raise TransientError(f"the process that reads Kafka partition {kafka_partition} ended with {done.returncode}")


def _parse(printed: bytes | None) -> list[tuple[int, str, int | None]]:
    """Return what the process has said: the next offset, why it got no further, and the batch of that."""
    return [tuple(json.loads(line)) for line in (printed or b"").splitlines() if line.endswith(b"]")]


def main() -> None:
    """Read what standard input asks for, and print [next offset, reason to end, batch] for each record. Ends without
    closing the client, which may hang for ever on what it cannot read."""
    asked = take_request()
    at, code = asked.start, 0

    def say(next_offset: int, why: str = "", batch: int | None = None) -> None:
        print(json.dumps([next_offset, why, batch]), flush=True)

    log = LogReader(asked.source, lambda arrived: say(max(at, arrived + 1)))
    try:
        for records in log.read_at_once(asked.kafka_partition, asked.start, asked.end):
            say(at := records.column("offset")[-1].as_py() + 1)
    except (OnceoverError, MemoryError) as error:
        say(getattr(error, "offset", at), str(error) or TOO_LARGE, getattr(error, "batch", None))
        code = choose_exit_code(error)
    os._exit(code)  # each line was flushed


if __name__ == "__main__":
    main()
