"""A repair's reading of raw from HDFS, beside the recipes that one would write first.

All of a repair but the ledger: every window's file is read to its frozen length, each line proved by its hashes, each
ID counted once, each landing compared with raw, and the aggregates made as COPY lines. The peers read the same files
from the same HDFS, by as many threads, drop duplicates by ID and parse the JSON; they prove nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from bench.processor_time import Processes, ProcessorTime
from bench.repair_peers import THREADS, aggregate_by_duckdb, aggregate_by_spark, fetch_files
from bench.table import Row, alternate_all, middle, results, runs
from bench.window_text import CONTRACT, WindowText, write_windows
from onceover.config.endpoints import address, locate_hdfs
from onceover.model.contract import Contracts
from onceover.raw.hdfs import connect_hdfs
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import prove
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.session import build, choose_codegen
from onceover_local.stack import Stack

SIZES = ((1_000_000, 288, 0.5, 1.0), (10_000_000, 2016, 0.35, 0.7))  # lines, windows, goals: of Spark, of DuckDB
QUICK = ((200_000, 48, 0.5, 1.0),)
MAX_RUNS = 3  # of the largest size, of which one takes minutes
NAMES = [*(key.name for key in CONTRACT.keys), *(measure.name for measure in CONTRACT.measures)]


@dataclass(slots=True)
class Runs:
    """What one way has used in each of its runs, and the rows that it gave."""

    work: Callable[[], list[str]]
    processes: Processes
    used: list[ProcessorTime] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def measure(self) -> float:
        """Run once, and return the seconds that it took."""
        before, started = self.processes.read_time(), time.monotonic()
        rows = self.work()
        took = time.monotonic() - started
        self.used.append(self.processes.read_time() - before)
        self.rows.append(sorted(rows))
        return took

    def describe(self) -> str:
        """Say in words the medians of processor seconds, without the first run."""
        own, jvm, hdfs = (middle([getattr(used, name) for used in self.used[1:]]) for name in ("own", "jvm", "hdfs"))
        return f"{own:.1f} of its own ({jvm:.1f} in the JVM) and {hdfs:.1f} in HDFS"


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--master local[{THREADS}] --driver-memory 4g pyspark-shell")
    spark = build("bench repair")
    stack = Stack(Path(os.environ["ONCEOVER_LOCAL"]))
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    processes = Processes(jvm, [stack.find_pid(name) for name in ("namenode", "datanode1")])
    rows: list[Row] = []
    notes: list[str] = []
    for lines, windows, of_spark, of_duckdb in QUICK if os.environ.get("BENCH") == "quick" else SIZES:
        folder = f"/bench/repair-{windows}"
        client = connect_hdfs(address("webhdfs"))
        text = write_windows(client, folder, lines, windows)
        compared, said = compare(spark, text, processes, of_spark, of_duckdb)
        client.delete(folder, recursive=True)
        rows += compared
        notes += said
    spark.stop()
    return rows, notes


def compare(
    spark: SparkSession, text: WindowText, processes: Processes, of_spark: float, of_duckdb: float
) -> tuple[list[Row], list[str]]:
    """Measure all three on these files, and compare their rows."""
    paths = [each.path for each in text.files.values()]
    urls = [address("hdfs").rstrip("/") + path for path in paths]
    local = results() / "fetched"
    scanned: list[float] = []

    def ask_duckdb() -> list[str]:
        fetch_files(address("hdfs"), paths, local)
        started = time.monotonic()
        rows = aggregate_by_duckdb(local)
        scanned.append(time.monotonic() - started)
        return rows

    every = [
        Runs(lambda: rebuild(spark, text, locate_hdfs()), processes),
        Runs(lambda: aggregate_by_spark(spark, urls), processes),
        Runs(ask_duckdb, processes),
    ]
    ours, naive, duckdb = every
    count = runs() if text.lines < 5_000_000 else min(runs(), MAX_RUNS)
    seconds = [middle(each) for each in alternate_all([each.measure for each in every], count)]
    correct = all(rows == ours.rows[0] for each in every for rows in each.rows)
    work = f"{text.lines:,} lines, {len(paths):,} windows"

    def compare_with(peer: float, name: str, goal: float) -> Row:
        ratio = seconds[0] / peer
        return Row(work, seconds[0], peer, name, "s", ratio, f"<= {goal}", ratio <= goal, correct, count)

    rows = [
        compare_with(seconds[1], "Spark: split, dropDuplicates on the ID, from_json, groupBy", of_spark),
        compare_with(seconds[2], f"DuckDB on files that {THREADS} threads fetch from the same HDFS", of_duckdb),
    ]
    notes = [
        f"{work}: {text.bytes / 2**20:,.0f} MiB, {text.bytes / text.lines:.0f} bytes a line, "
        f"{len(ours.rows[0]):,} rows, all compared",
        f"processor seconds: ours {ours.describe()}, Spark {naive.describe()}, DuckDB {duckdb.describe()}; DuckDB "
        f"alone, from local files, takes {middle(scanned[1:]):.1f} s",
    ]
    return rows, notes


def rebuild(spark: SparkSession, text: WindowText, raw_address: str) -> list[str]:
    """Rebuild all windows from that raw store, and return the rows of those that are proved as COPY lines."""
    contracts = Contracts((CONTRACT,))
    with (
        choose_codegen(spark, text.bytes),
        closing(FoldedRebuild(spark, raw_address, contracts, text.claimed, text.accounted, (), text.files)) as rebuilt,
    ):
        found = rebuilt.collect()
        rows = list(format_copy_lines(rebuilt.aggregate(), NAMES))
    for claim in text.claimed:
        verdict = prove(claim, found[claim.window_start])
        if not verdict.is_proved:
            raise RuntimeError(f"{claim.window_start} is not proved: {verdict.reasons}")
    return rows
