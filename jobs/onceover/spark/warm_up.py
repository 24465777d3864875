"""What Spark would do one by one until its first task has run, done beside the start of a session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from pyspark import SparkContext

from onceover.lines.folded_window import fold_units
from onceover.raw.frozen_file import FrozenFiles
from onceover.spark.python_worker import freeze_modules


def load_functions() -> None:
    """Load the functions of Spark's ML, which each session takes up: by Scala's reflection, for half a second."""
    jvm: Any = SparkContext._jvm
    _begin(lambda: jvm.java.lang.Class.forName("org.apache.spark.sql.ml.InternalFunctionRegistration$"))


def start_worker(context: SparkContext) -> None:
    """Start a worker of Python, and have it import what folds window files."""
    _begin(lambda: context.parallelize([(fold_units, FrozenFiles)], 1).foreach(lambda _: freeze_modules()))


def _begin(work: Callable[[], object]) -> None:
    """Do the work in a thread. Who needs its result does it again, and reports an error."""

    def run() -> None:
        with suppress(Exception):
            work()

    Thread(target=run, name="warm-up", daemon=True).start()
