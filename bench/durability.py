"""Appends to window files on DataNodes that write them to disk at once, beside DataNodes as Hadoop sets them.

Both HDFS run side by side, each with settings of its own, and take the same appends in turn: few and large ones, as of
a backlog, and many small ones, as of a late record in each of many windows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from bench.table import Row, alternate, middle, results, runs
from onceover.config import endpoints
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles
from onceover_local.stack import Stack, hdfs

DAY = datetime(2026, 3, 1, tzinfo=UTC)
CHUNK = b"x" * (1 << 20)
LARGE, LARGE_CHUNKS = 7, 30
SMALL, SMALL_BYTES = 100, 4096
SYNC = "dfs.datanode.synconclose"
GOAL = 0.5


def measure() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes."""
    with _serve("true") as durable, _serve("false") as plain:
        large = alternate(lambda: _append_large(durable), lambda: _append_large(plain), runs())
        small = alternate(lambda: _append_small(durable), lambda: _append_small(plain), runs())
        correct = _list_lengths(durable) == _list_lengths(plain) == _expected_lengths(runs() + 1)
    volume = LARGE * LARGE_CHUNKS
    rows = [
        _compare(f"appends of {LARGE_CHUNKS} MiB, to disk", "MiB/s", volume, large, correct=correct),
        _compare(f"appends of {SMALL_BYTES // 1024} KiB, to disk", "appends/s", SMALL, small, correct=correct),
    ]
    notes = [
        f"{SYNC}: an append of {SMALL_BYTES // 1024} KiB takes {1000 * middle(small[0]) / SMALL:.1f} ms with it, "
        f"{1000 * middle(small[1]) / SMALL:.1f} ms without; {volume} MiB in {LARGE} files take "
        f"{middle(large[0]):.2f} s with it, {middle(large[1]):.2f} s without"
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
        yield WindowFiles(address, Layout("/bench", "appends"))
    finally:
        hdfs.DURABLE[SYNC] = usual
        stack.remove()


def _append_large(files: WindowFiles) -> float:
    return _append(files, range(LARGE), [CHUNK] * LARGE_CHUNKS)


def _append_small(files: WindowFiles) -> float:
    return _append(files, range(LARGE, LARGE + SMALL), [CHUNK[:SMALL_BYTES]])


def _append(files: WindowFiles, windows: range, chunks: list[bytes]) -> float:
    started = time.monotonic()
    for window in windows:
        result = files.append(files.layout.window_file(_start(window)), chunks)
        if not result.proved:
            raise RuntimeError(f"an append to window {window} is not proved")
    return time.monotonic() - started


def _start(window: int) -> datetime:
    return DAY + timedelta(minutes=5 * window)


def _list_lengths(files: WindowFiles) -> list[int]:
    lengths = files.read_lengths(map(_start, range(LARGE + SMALL)))
    return [length for _, length in sorted(lengths.items())]


def _expected_lengths(times: int) -> list[int]:
    return [times * LARGE_CHUNKS * len(CHUNK)] * LARGE + [times * SMALL_BYTES] * SMALL
