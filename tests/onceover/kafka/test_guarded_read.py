"""Reads in a process of their own: how it ended says whether the range was read, and its pipe does not."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from onceover.errors import TransientError, UnreadableRecordError
from onceover.kafka import child_read
from onceover.kafka.child_read import OTHER, UNREADABLE, read_apart
from onceover.kafka.reader import KafkaSource


def end_after_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Have the process write offset 10 of the range, and end so."""
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, pickle, signal, sys\n"
        f"sys.path[:] = {sys.path!r}\n"
        "import pyarrow as pa\n"
        "pickle.load(sys.stdin.buffer)\n"
        "schema = pa.schema([('offset', pa.int64())])\n"
        "stream = pa.ipc.new_stream(sys.stdout.buffer, schema)\n"
        "stream.write_batch(pa.RecordBatch.from_arrays([pa.array([10])], schema=schema))\n"
        "sys.stdout.buffer.flush()\n"
        "print('\\n[\"offset 11: why\", 11, null]', file=sys.stderr, flush=True)\n"
        f"{ending}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(child_read, "sys", SimpleNamespace(executable=str(program), path=sys.path))


def receive(end: int) -> list[int]:
    source = KafkaSource("127.0.0.1:9", "things", "id")
    return [at for batch in read_apart(source, 0, 10, end) for at in batch.column("offset").to_pylist()]


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        (f"os._exit({UNREADABLE})", UnreadableRecordError),
        (f"os._exit({OTHER})", TransientError),
        ("os.kill(os.getpid(), signal.SIGKILL)", UnreadableRecordError),
        ("os.kill(os.getpid(), signal.SIGTERM)", TransientError),
        ("os.kill(os.getpid(), signal.SIGALRM)", TransientError),
        (f"print('%4|a client''s thread', file=sys.stderr, flush=True); os._exit({UNREADABLE})", UnreadableRecordError),
        ("os._exit(1)", TransientError),
    ],
)
def test_end_between_two_batches_is_no_end_of_the_range(
    ending: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_after_a_batch(tmp_path, monkeypatch, ending)
    with pytest.raises(error, match="offset 11"):
        receive(1000)


@pytest.mark.parametrize(
    ("ending", "end"),
    [
        (f"os._exit({UNREADABLE})", 11),
        ("stream.close(); sys.stdout.buffer.flush(); os._exit(0)", 1000),  # the last may hold no record for a reader
    ],
    ids=["dies behind it", "ends well"],
)
def test_process_that_ends_after_the_range_has_read_it(
    ending: str, end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_after_a_batch(tmp_path, monkeypatch, ending)
    assert receive(end) == [10]


def test_process_of_a_reader_that_is_interrupted_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a task's time limit, whose error is no Exception: the process would go on until it ends by itself."""
    end_after_a_batch(tmp_path, monkeypatch, "import time; time.sleep(60)")
    reading = read_apart(KafkaSource("127.0.0.1:9", "things", "id"), 0, 10, 1000)
    next(reading)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(reading)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 10
