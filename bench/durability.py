"""Appends to window files on DataNodes that write them to disk at once, beside DataNodes as Hadoop sets them.

Both HDFS run side by side on one disk, each with settings of its own, and take the same appends in turn: few and large
ones, as of a backlog, and many small ones, as of a late record in each of many windows. What is still to be written is
written before each of them, so that neither pays for the other. Every byte is read back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from bench.table import Row, alternate, middle, results, runs
from onceover.cli.doctor.datanodes import SYNC, list_datanodes, read_setting
from onceover.config import endpoints
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles
from onceover_local.stack import Stack, hdfs

DAY = datetime(2026, 3, 1, tzinfo=UTC)
CHUNK = b"x" * (1 << 20)
LARGE, LARGE_CHUNKS = 7, 30
SMALL, SMALL_BYTES = 100, 4096
FSYNCS = 50
GOAL = 0.5


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes."""
    with _serve("true") as durable, _serve("false") as plain:
        large = alternate(lambda: _append_large(durable), lambda: _append_large(plain), runs())
        small = alternate(lambda: _append_small(durable), lambda: _append_small(plain), runs())
        correct = all(_holds_all(files, runs() + 1) for files in (durable, plain))
    volume = LARGE * LARGE_CHUNKS
    rows = [
        _compare(f"appends of {LARGE_CHUNKS} MiB, to disk", "MiB/s", volume, large, correct=correct),
        _compare(f"appends of {SMALL_BYTES // 1024} KiB, to disk", "appends/s", SMALL, small, correct=correct),
    ]
    notes = [
        f"{os.cpu_count()} cores; without HDFS a write of {SMALL_BYTES // 1024} KiB and its fsync take "
        f"{1000 * _time_fsync():.2f} ms on this disk",
        f"{SYNC}: an append of {SMALL_BYTES // 1024} KiB takes {1000 * middle(small[0]) / SMALL:.1f} ms with it, "
        f"{1000 * middle(small[1]) / SMALL:.1f} ms without; {volume} MiB in {LARGE} files take "
        f"{middle(large[0]):.2f} s with it, {middle(large[1]):.2f} s without",
    ]
    return rows, notes


def _compare(work: str, unit: str, amount: int, seconds: tuple[list[float], list[float]], *, correct: bool) -> Row:
    ours, peer = (amount / middle(each) for each in seconds)
    ratio = ours / peer
    return Row(work, ours, peer, f"without {SYNC}", unit, ratio, f"{GOAL}", ratio >= GOAL, correct, len(seconds[0]))


@contextmanager
def _serve(sync: str) -> Iterator[WindowFiles]:
    """Start an HDFS whose DataNodes have that setting, and stop it at the end."""
    place = results() / f"hdfs-{sync}"
    stack = Stack(place)
    stack.remove()
    usual = hdfs.DURABLE[SYNC]
    hdfs.DURABLE[SYNC] = sync
    try:
        stack = Stack(place)
        stack.up(("hdfs",))
        address = endpoints.read_endpoints(endpoints.endpoints_file(place))["webhdfs"]
        if {read_setting(node, SYNC) for node in list_datanodes(address)} != {sync}:
            raise RuntimeError(f"the DataNodes do not run with {SYNC}={sync}")
        yield WindowFiles(address, Layout("/bench", "appends"))
    finally:
        hdfs.DURABLE[SYNC] = usual
        stack.remove()


def _append_large(files: WindowFiles) -> float:
    return _append(files, range(LARGE), [CHUNK] * LARGE_CHUNKS)


def _append_small(files: WindowFiles) -> float:
    return _append(files, range(LARGE, LARGE + SMALL), [CHUNK[:SMALL_BYTES]])


def _append(files: WindowFiles, windows: range, chunks: list[bytes]) -> float:
    os.sync()
    started = time.monotonic()
    for window in windows:
        result = files.append(files.layout.window_file(_start(window)), chunks)
        if not result.proved:
            raise RuntimeError(f"an append to window {window} is not proved")
    return time.monotonic() - started


def _start(window: int) -> datetime:
    return DAY + timedelta(minutes=5 * window)


def _holds_all(files: WindowFiles, times: int) -> bool:
    return all(
        _is_whole(files, window, size)
        for windows, size in (
            (range(LARGE), times * LARGE_CHUNKS * len(CHUNK)),
            (range(LARGE, LARGE + SMALL), times * SMALL_BYTES),
        )
        for window in windows
    )


def _is_whole(files: WindowFiles, window: int, size: int) -> bool:
    length = 0
    for piece in files.read_window(_start(window)):
        length += len(piece)
        if piece.strip(CHUNK[:1]):
            return False
    return length == size


def _time_fsync() -> float:
    """Return the median of some small writes to the disk that both HDFS are on."""
    path = results() / "fsync"
    seconds = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            started = time.monotonic()
            file.write(CHUNK[:SMALL_BYTES])
            os.fsync(file.fileno())
            seconds.append(time.monotonic() - started)
    path.unlink()
    return middle(seconds)
