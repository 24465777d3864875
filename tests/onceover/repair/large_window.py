"""A process that folds windows in a Spark of its own, and says what they held and how much memory it took.

Run by `test_large_window.py`: its input is a pickled `FoldTask` on stdin, its output JSON on the last line of stdout.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.window_text import CONTRACT, WindowText

from onceover.model.contract import Contracts
from onceover.repair.folded import FoldedRebuild
from onceover.spark.session import open_session


@dataclass(frozen=True, slots=True)
class FoldTask:
    """Windows on HDFS at that address."""

    address: str
    written: WindowText


def run(task: FoldTask) -> dict[str, object]:
    """Return the numbers of all windows, their rows, and the peaks of memory in MiB by process."""
    written = task.written
    with open_session("large window") as spark:
        contracts, accounted = Contracts((CONTRACT,)), written.accounted
        with closing(
            FoldedRebuild(spark, task.address, contracts, written.claimed, accounted, (), written.files)
        ) as rebuild:
            rebuilt = rebuild.collect()
            rows = sorted(tuple(row)[1:] for row in rebuild.aggregate().collect())
            peaks = dict(_list_peaks())
    (window,) = rebuilt.values()
    return {
        "lines": window.lines,
        "duplicates": window.duplicates,
        "digest": window.digest.as_tuple(),
        "failures": list(rebuild.failures.values()),
        "rows": rows,
        "peaks": peaks,
    }


def _list_peaks() -> Iterator[tuple[str, int]]:
    """Yield the largest resident memory of the JVM and of each Python process below it, in MiB."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except FileNotFoundError:  # it has ended
            continue
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if "VmHWM" in status:
                yield f"{status['Name'].strip()} {pid}", int(status["VmHWM"].split()[0]) // 1024


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(run(pickle.load(sys.stdin.buffer)), default=int) + "\n")
