"""How the cost of a repair's reading grows with lines, windows and cores, beside naive Spark on the same files.

Each point is a process of its own with a driver of 1 GiB; executors of a cluster have 1 GiB and one core each.
"""

from __future__ import annotations

import csv
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import matplotlib

from bench.table import Row, results
from bench.window_text import write_windows
from onceover.config.endpoints import address
from onceover.raw.hdfs import connect_hdfs

matplotlib.use("Agg")
from matplotlib import pyplot

LINES = ((100_000, 100), (1_000_000, 100), (10_000_000, 100))
WINDOWS = ((1_000_000, 1), (1_000_000, 100), (1_000_000, 10_000))
QUICK_LINES = ((10_000, 10), (100_000, 10))
QUICK_WINDOWS = ((100_000, 1), (100_000, 10))
LOCAL = "local[2]"
MASTERS = ("local[1]", LOCAL, "local-cluster[1,1,1024]", "local-cluster[2,1,1024]", "local-cluster[4,1,1024]")
QUICK_MASTERS = ("local[1]", LOCAL)
RUNS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: medians in seconds, processor seconds of Spark and its workers, the most MiB of each."""

    lines: int
    windows: int
    master: str
    bytes: int
    first: float
    ours: float
    naive: float
    processor_ours: float
    processor_naive: float
    jvm_mib: float
    workers_mib: float
    equal: bool


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them; write `growth.csv` and `growth.png`."""
    quick = os.environ.get("BENCH") == "quick"
    of_lines, of_windows = (QUICK_LINES, QUICK_WINDOWS) if quick else (LINES, WINDOWS)
    runs, masters = (1, QUICK_MASTERS) if quick else (RUNS, MASTERS)
    points: list[Point] = []
    for lines, windows in dict.fromkeys((*of_lines, *of_windows)):
        several = (lines, windows) == of_windows[1]
        points += _measure(lines, windows, masters if several else (LOCAL,), runs)
    local = {(p.lines, p.windows): p for p in points if p.master == LOCAL}
    _write(points)
    _draw(
        [local[size] for size in of_lines],
        [local[size] for size in of_windows],
        [p for p in points if (p.lines, p.windows) == of_windows[1]],
    )
    rows = [
        Row(
            f"{p.lines:,} lines, {p.windows:,} windows, {p.master}",
            *(p.ours, p.naive, "naive Spark", "s", p.ours / p.naive),
            *("< 1", p.ours < p.naive, p.equal, runs),
        )
        for p in points
    ]
    notes = [
        f"{p.lines:,} lines, {p.windows:,} windows, {p.master}: {p.bytes / 2**20:,.0f} MiB; {p.first:.1f} s in a new "
        f"process; processor seconds {p.processor_ours:.1f}, naive Spark {p.processor_naive:.1f}; at most "
        f"{p.jvm_mib:,.0f} MiB in JVMs and {p.workers_mib:,.0f} MiB in Python workers"
        for p in points
    ]
    return rows, notes


def _measure(lines: int, windows: int, masters: Sequence[str], runs: int) -> list[Point]:
    client, folder = connect_hdfs(address("webhdfs")), f"/bench/growth-{lines}-{windows}"
    text = write_windows(client, folder, lines, windows)
    files = results() / "growth.pickle"
    files.parent.mkdir(parents=True, exist_ok=True)
    files.write_bytes(pickle.dumps(text))
    points = []
    for master in masters:
        command = (sys.executable, "-m", "bench.growth_point", str(files), master, str(runs))
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        points.append(Point(lines, windows, master, text.bytes, **json.loads(said)))
        print(f"  {points[-1]}", flush=True)
    client.delete(folder, recursive=True)
    return points


def _write(points: Sequence[Point]) -> None:
    with (results() / "growth.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, asdict(points[0]))
        writer.writeheader()
        writer.writerows(map(asdict, points))


def _draw(of_lines: Sequence[Point], of_windows: Sequence[Point], of_masters: Sequence[Point]) -> None:
    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for panel, points, name in ((panels[0], of_lines, "lines"), (panels[1], of_windows, "windows")):
        sizes = [getattr(p, name) for p in points]
        panel.loglog(sizes, [p.ours for p in points], "o-", label="Onceover")
        panel.loglog(sizes, [p.naive for p in points], "s--", label="naive Spark, which proves nothing")
        panel.set_xlabel(name)
    panels[0].legend(fontsize="small")
    masters = [p.master.replace("local-cluster", "cluster").replace(",1,1024", "") for p in of_masters]
    places = range(len(masters))
    panels[2].bar([at - 0.2 for at in places], [p.ours for p in of_masters], 0.4)
    panels[2].bar([at + 0.2 for at in places], [p.naive for p in of_masters], 0.4)
    panels[2].set_xticks(places, masters, rotation=20, fontsize="small")
    panels[2].set_xlabel("cores in one process, or executors of one core")
    for panel in panels:
        panel.set_ylabel("seconds, warm")
        panel.grid(alpha=0.3, which="both")
    figure.savefig(results() / "growth.png", dpi=110)
    pyplot.close(figure)
