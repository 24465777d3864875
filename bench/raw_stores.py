"""Raw on HBase beside raw on HDFS, and HDFS's own protocol beside WebHDFS: the same appends, reads and repair.

HBase's own files are on the same HDFS, so that both write to one DataNode. Every byte is read back, and the rows of
both repairs are compared.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bench.repair import rebuild
from bench.repair_peers import THREADS
from bench.table import Row, alternate, middle, runs
from bench.window_text import WindowText, write_windows
from onceover.config.endpoints import address, locate_hdfs
from onceover.raw.frozen_file import FrozenFiles
from onceover.raw.hdfs import connect_hdfs
from onceover.raw.store import RawStore, make_address, open_store
from onceover.spark.session import build
from onceover_local.stack import Stack

LINES, WINDOWS = 1_000_000, 288
QUICK = (200_000, 48)
SMALL, SMALL_BYTES = 100, 4096
GOALS = {"append": 0.3, "small": 1.0, "read": 0.3, "repair": 0.5, "known": 2.0, "native": 1.5}
"""HBase may be so much slower: what makes raw on it usable is that a repair takes no more than twice as long. HDFS's
own protocol has to be so much faster than WebHDFS."""


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--master local[{THREADS}] --driver-memory 4g pyspark-shell")
    Stack(Path(os.environ["ONCEOVER_LOCAL"])).up(("hbase",))
    on_hdfs, webhdfs, on_hbase = locate_hdfs(), address("webhdfs"), make_address("hbase", address("hbase"))
    hdfs, hbase = open_store(on_hdfs), open_store(on_hbase)
    lines, windows = QUICK if os.environ.get("BENCH") == "quick" else (LINES, WINDOWS)
    client, folder = connect_hdfs(webhdfs), f"/bench/{uuid.uuid4().hex[:8]}"
    text = write_windows(client, folder, lines, windows)
    paths = [each.path for each in text.files.values()]
    contents = {path: hdfs.read(path) or b"" for path in paths}
    for path, content in contents.items():
        hbase.append(path, [content])
    kept = client.content("/hbase")["length"]

    appended = alternate(lambda: append_all(hbase, contents), lambda: append_all(hdfs, contents), runs())
    proved: list[bool] = []
    small = alternate(lambda: append_small(hbase, proved), lambda: append_small(hdfs, proved), runs())
    known = alternate(lambda: append_known(on_hdfs, proved), lambda: append_known(webhdfs, proved), runs())
    digests: list[str] = []
    read = alternate(lambda: read_all(on_hbase, text, digests), lambda: read_all(on_hdfs, text, digests), runs())
    native = alternate(lambda: read_all(on_hdfs, text, digests), lambda: read_all(webhdfs, text, digests), runs())
    spark = build("bench raw stores")
    rows: list[list[str]] = []
    repaired = alternate(
        lambda: repair(spark, text, on_hbase, rows), lambda: repair(spark, text, on_hdfs, rows), runs()
    )
    spark.stop()

    size = text.bytes / 2**20
    correct = {
        "append": all(hbase.read(path) == content for path, content in contents.items()),
        "small": all(proved),
        "known": all(proved),
        "read": len(set(digests)) == 1,
        "native": len(set(digests)) == 1,
        "repair": all(each == rows[0] for each in rows) and bool(rows[0]),
    }

    def compare(
        name: str,
        work: str,
        unit: str,
        amount: float,
        seconds: tuple[list[float], list[float]],
        to: str = "raw on HDFS",
    ) -> Row:
        ours, peer = (amount / middle(each) for each in seconds)
        ratio, goal = ours / peer, GOALS[name]
        return Row(work, ours, peer, to, unit, ratio, f"{goal}", ratio >= goal, correct[name], runs())

    table = [
        compare("append", f"{windows} appends, HBase", "MiB/s", size, appended),
        compare("small", f"appends of {SMALL_BYTES // 1024} KiB, HBase", "appends/s", SMALL, small),
        compare("read", "frozen files read, HBase", "MiB/s", size, read),
        compare("known", f"appends of {SMALL_BYTES // 1024} KiB to a file, HDFS", "appends/s", SMALL, known, "WebHDFS"),
        compare("native", "frozen files read, HDFS", "MiB/s", size, native, "WebHDFS"),
        compare("repair", f"{lines:,} lines repaired, HBase", "lines/s", text.lines, repaired),
    ]
    notes = [
        f"{size:,.0f} MiB of lines in {windows} windows take {kept / 2**20:,.0f} MiB in HBase's folder, its log and "
        "what it has not compacted yet included",
        f"repair: {middle(repaired[0]):.1f} s on HBase, {middle(repaired[1]):.1f} s on HDFS; {len(rows[0]):,} rows",
    ]
    return table, notes


def append_all(store: RawStore, contents: dict[str, bytes]) -> float:
    """Append each content to a new file."""
    root = f"/bench/{uuid.uuid4().hex[:8]}"
    return measure(lambda: [store.append(f"{root}{path}", [content]) for path, content in contents.items()])


def append_small(store: RawStore, proved: list[bool]) -> float:
    """Append some bytes to each of many new files, and add whether the file's length afterwards proves them."""
    root = f"/bench/{uuid.uuid4().hex[:8]}"
    appends = (store.append(f"{root}/{n}.log", [b"x" * SMALL_BYTES]) for n in range(SMALL))
    return measure(lambda: proved.extend(each.proved for each in appends))


def append_known(raw_address: str, proved: list[bool]) -> float:
    """Append some bytes to one file again and again, and add whether the file's length afterwards proves them."""
    store, path = open_store(raw_address), f"/bench/{uuid.uuid4().hex[:8]}/0.log"
    store.append(path, [b"first"])
    appends = (store.append(path, [b"x" * SMALL_BYTES]) for _ in range(SMALL))
    return measure(lambda: proved.extend(each.proved for each in appends))


def read_all(raw_address: str, text: WindowText, digests: list[str]) -> float:
    """Read all lines as a repair's task does, and add the digest of what was read."""
    files, digest = FrozenFiles(raw_address), hashlib.blake2b()

    def work() -> None:
        for each in text.files.values():
            for piece in files.read_lines(each.path, each.length):
                digest.update(piece)

    took = measure(work)
    digests.append(digest.hexdigest())
    return took


def repair(spark: SparkSession, text: WindowText, raw_address: str, rows: list[list[str]]) -> float:
    """Rebuild all windows, and add the rows."""
    return measure(lambda: rows.append(sorted(rebuild(spark, text, raw_address))))


def measure(work: Callable[[], object]) -> float:
    """Return the seconds that the work takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started
