"""A read in a process of its own, which may die of what it reads: what it is asked, what it delivers, how it ends.

The process writes an Arrow stream to standard output, and to standard error, at once, the next offset after a record
that arrived, for its client may die of the batch behind before the record is delivered. Where it ends before the range
does, its last line there says why, as JSON: [why, the offset that cannot be read, the first of its batch of Kafka's].
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from tempfile import TemporaryFile
from typing import Final

import pyarrow as pa

from onceover.errors import OnceoverError, TransientError, UnreadableRecordError
from onceover.kafka.memory_limit import MAX_PROBE_BYTES, limit_memory
from onceover.kafka.reader import KafkaSource, LogReader
from onceover.kafka.record_batch import SCHEMA

UNREADABLE: Final = 3
"""The code to exit with if the next offset cannot be read."""
OTHER: Final = 4
"""The code to exit with if reading ended for another reason: Kafka does not answer, or does not hold the range."""
_TOO_LARGE: Final = "its batch decompresses to more than a reader has memory for"
_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
_MOST_SILENCE_SECONDS: Final = 600
"""How long nothing may arrive, beyond what the reader itself waits: then the client hangs, and the process dies."""


def read_apart(
    source: KafkaSource, kafka_partition: int, start: int, end: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the records of `[start, end)` as a process of its own delivers them, which fetches a batch of Kafka's at a
    time. Raise UnreadableRecordError for an offset on which it fails, or dies before it is through the range;
    TransientError where it ends otherwise: a person's or a service manager's signal says nothing of what it read."""
    at, command = start, [sys.executable, "-m", __name__]
    with (
        TemporaryFile() as errors,  # a pipe that nothing empties meanwhile would hold up the process
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=build_environment()
        ) as child,
    ):
        if not (child.stdin and child.stdout):
            raise ValueError("a process without pipes")
        asked = replace(source, one_batch_a_fetch=True, unreadable=()), kafka_partition, start, end
        child.stdin.write(pickle.dumps(asked))
        child.stdin.close()
        try:
            with suppress(pa.ArrowInvalid, OSError):  # it ended in the middle
                for batch in pa.ipc.open_stream(child.stdout):
                    at = batch.column("offset")[-1].as_py() + 1
                    yield batch
            # Arrow takes the end of a pipe between two batches for the end of the stream: only the exit code says which
            # it was.
            code = child.wait()
        except BaseException:  # a time limit, a person, a reader that has enough: the process would read on
            child.kill()
            raise
        errors.seek(0)
        said = errors.read().decode(errors="replace").splitlines()
    if code == 0 or at >= end:
        return
    if code in (UNREADABLE, OTHER):
        # The client's threads print there too.
        why, offset, kafka_batch = json.loads(next(line for line in reversed(said) if line.startswith("[")))
        if code == OTHER:
            raise TransientError(why)
        raise UnreadableRecordError(why, max(at, offset or at), kafka_batch)
    if (code < 0 and -code not in _STOPS) or any("MemoryError" in line for line in said):
        at = max([at, *(int(line) for line in said if line.isdigit())])
        raise UnreadableRecordError(f"offset {at}: {_TOO_LARGE}", at)
    raise TransientError(f"the process that reads Kafka partition {kafka_partition} ended at offset {at} with {code}")


def build_environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def main() -> None:
    """Deliver what standard input asks for, and end without closing the client, which may hang for ever on what it
    cannot read."""
    source, kafka_partition, start, end = pickle.load(sys.stdin.buffer)
    limit_memory(MAX_PROBE_BYTES)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(_MOST_SILENCE_SECONDS)
    try:
        reader = LogReader(source, _note)
        stream = pa.ipc.new_stream(sys.stdout.buffer, SCHEMA)
        for batch in reader.read_at_once(kafka_partition, start, end):
            stream.write_batch(batch)
            sys.stdout.buffer.flush()
        stream.close()
        sys.stdout.buffer.flush()
    except (OnceoverError, MemoryError) as error:
        why = [str(error) or _TOO_LARGE, getattr(error, "offset", None), getattr(error, "batch", None)]
        sys.stderr.write(f"\n{json.dumps(why)}\n")
        sys.stderr.flush()
        os._exit(UNREADABLE if isinstance(error, UnreadableRecordError | MemoryError) else OTHER)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the client is not closed
        traceback.print_exception(error)
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _note(arrived: int) -> None:
    signal.alarm(_MOST_SILENCE_SECONDS)
    print(arrived + 1, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
