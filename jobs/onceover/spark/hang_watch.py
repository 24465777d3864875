"""The end of a Spark that evaluates a batch without end: a task within a regular expression cannot be stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final

import psutil
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from onceover.errors import HungSparkError, SparkLostError
from onceover.spark.task_progress import has_executors

CPU_SECONDS: Final = 30.0
"""That Spark's JVM may work on a batch, besides CPU_SECONDS_AN_OFFSET: a record of many `from_json` takes a
millisecond, most take fifty times less."""
CPU_SECONDS_AN_OFFSET: Final = 0.002
LEAST_LOAD: Final = 0.05
"""Of one processor, over the whole batch: a JVM that waits for Kafka or for raw does not evaluate."""
ON_CLUSTER_SECONDS: Final = 1800.0
"""That a batch may take where executors evaluate it on other machines, without the time that it waits for them."""
_LOOK_SECONDS: Final = 1.0
_LOOK_ON_CLUSTER_SECONDS: Final = 10.0


@contextmanager
def end_hung_spark(spark: SparkSession, offsets: int) -> Iterator[None]:
    """Kill Spark's JVM if the block, which evaluates so many offsets, works for longer than the bounds above. The block
    raises SparkLostError then, which becomes HungSparkError."""
    over, killed = threading.Event(), threading.Event()

    def look() -> None:
        jvm, is_local = _find_jvm(spark), str(spark.sparkContext.master).startswith("local")
        allowed = CPU_SECONDS + CPU_SECONDS_AN_OFFSET * offsets
        began, cpu_began = monotonic(), read_cpu_seconds(jvm)
        while not over.wait(_LOOK_SECONDS if is_local else _LOOK_ON_CLUSTER_SECONDS):
            if not is_local and _waits_for_executors(spark):
                began = monotonic()
            cpu, seconds = read_cpu_seconds(jvm) - cpu_began, monotonic() - began
            if (cpu > max(allowed, LEAST_LOAD * seconds)) if is_local else (seconds > ON_CLUSTER_SECONDS):
                killed.set()
                jvm.kill()
                jvm.wait()
                return

    def look_while_it_lives() -> None:
        with suppress(psutil.NoSuchProcess):
            look()

    threading.Thread(target=look_while_it_lives, name="hang watch", daemon=True).start()
    try:
        yield
    except SparkLostError as error:
        if not killed.is_set():
            raise
        raise HungSparkError(f"Spark did not get to the end of {offsets:,} offsets; its JVM was ended") from error
    finally:
        over.set()


def _waits_for_executors(spark: SparkSession) -> bool:
    """Return whether no executor is there; False if the JVM does not answer at once: it may be what hangs."""
    answers: list[bool] = []

    def ask() -> None:
        with suppress(Py4JError, OSError):
            answers.append(has_executors(spark))

    asking = threading.Thread(target=ask, name="hang watch's question", daemon=True)
    asking.start()
    asking.join(_LOOK_SECONDS)
    return answers == [False]


def _find_jvm(spark: SparkSession) -> psutil.Process:
    jvm: Any = spark._jvm
    return psutil.Process(jvm.java.lang.ProcessHandle.current().pid())


def read_cpu_seconds(jvm: psutil.Process) -> float:
    """Return the processor time that the JVM has taken. Raises NoSuchProcess if it has ended."""
    times = jvm.cpu_times()
    return float(times.user + times.system)
