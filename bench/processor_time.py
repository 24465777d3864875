"""The processor time of a benchmark's processes: this one with Spark and its workers, and the servers of HDFS."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Seconds that were used so far: in `python`, this process and Spark's Python workers, in Spark's `jvm`, and in the
    servers of `hdfs`."""

    python: float
    jvm: float
    hdfs: float

    def __sub__(self, before: ProcessorTime) -> ProcessorTime:
        return ProcessorTime(self.python - before.python, self.jvm - before.jvm, self.hdfs - before.hdfs)

    @property
    def own(self) -> float:
        return self.python + self.jvm


class Processes:
    """Spark's JVM, below which its Python workers are, and the servers of HDFS, by pid."""

    def __init__(self, jvm: int, hdfs: Sequence[int]) -> None:
        self._jvm, self._hdfs = psutil.Process(jvm), [psutil.Process(pid) for pid in hdfs]
        self._workers: dict[psutil.Process, float] = {}  # those that have ended, too

    def read_time(self) -> ProcessorTime:
        """Read the time of all of them, and of this process."""
        for worker in self._jvm.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                self._workers[worker] = _sum_times(worker)
        python = _sum_times(psutil.Process()) + sum(self._workers.values())
        return ProcessorTime(python, _sum_times(self._jvm), sum(map(_sum_times, self._hdfs)))


def _sum_times(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
