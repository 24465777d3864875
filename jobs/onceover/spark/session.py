"""The Spark session, with the settings that the meaning of pipeline SQL and of an append depends on."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from onceover.config import endpoints
from onceover.errors import ConfigurationError
from onceover.spark import class_archive

_STOPPING = (signal.SIGTERM, signal.SIGINT)
MEANING = {  # the same SQL must mean the same when a window is ingested and when it is rebuilt, years later
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # a bad cast is null, it does not stop the topic
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # EXCEPTION throws where older versions of Spark read otherwise
    "spark.sql.json.enablePartialResults": "true",  # else one field of another type looks like broken JSON
}
_NEEDED = {
    "spark.speculation": "false",  # a second try of a task that appends, while the first still runs, appends twice
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # at 1 MB a record: half of what an Arrow column can hold
    # Window files are read by name, by the hundred; listed in a Spark job of a task each, that costs more than to read.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "2000",
    # Tells the JVM the Python line of each column expression, which more than doubles the calls of a plan's making.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # spark-submit turns it on for Python, and it garbles our own
}
_UNLESS_GIVEN = {
    "spark.ui.enabled": "false",  # it listens on all addresses
    "spark.sql.shuffle.partitions": "8",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
COMPILED_FROM_BYTES = 8 << 20
"""At 13 MiB, 100,000 lines, both took the same time; from 8 on, a faster disk or processor may turn the scale."""
_COMPILING = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "MASTER")  # a master may be named there
_UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"
_MASTER = re.compile(r"[A-Za-z0-9:/.,_*\[\]-]+")


def build(app_name: str) -> SparkSession:
    """A session of that name; the master is spark-submit's. Under a plain `python` it is the cluster that
    `onceover.config.endpoints` knows, else `local[*]`.

    What spark-submit or spark-defaults.conf say about the UI and shuffle partitions holds; the rest is set here.
    Raises ConfigurationError if what names the cluster is no master.
    """
    if not any(name in os.environ for name in _ELSEWHERE):
        cluster = None if _UNDER_SUBMIT in os.environ else endpoints.find_address("spark")
        if cluster is not None:
            if not _MASTER.fullmatch(cluster):
                raise ConfigurationError(f"{cluster!r} is no Spark master; ONCEOVER_SPARK wants one, spark://HOST:PORT")
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {cluster} pyspark-shell"
        if cluster is None or "//127.0.0.1:" in cluster:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # read when the JVM starts
    # Spark would start whatever `python3` is on PATH, which need not have this library.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.update(class_archive.driver_options(os.environ))
    # An analysis error is told in one line; pyspark would log its whole JVM stack besides.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_interrupted_call)
    with _undisturbed():
        SparkContext._ensure_initialized()  # only now does SparkConf know what spark-submit was given
    given = SparkConf()
    softly = _UNLESS_GIVEN
    if str(given.get("spark.master", "local")).startswith("local"):
        softly = softly | _LOOPBACK
    builder = SparkSession.builder.appName(app_name)
    for key, value in ({k: v for k, v in softly.items() if not given.contains(k)} | _NEEDED | MEANING).items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's own asks the JVM in the middle of another question
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def running(app_name: str) -> Iterator[SparkSession]:
    """What `build` gives, stopped at the end, however that comes."""
    session = build(app_name)
    try:
        yield session
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died has nothing left to stop
            session.stop()


@contextmanager
def compiled_for(session: SparkSession, size: int) -> Iterator[None]:
    """What reads `size` bytes of raw within is compiled to Java, or interpreted if they are few.

    To write and compile the Java of a repair takes a cold driver 8 s. What spark-submit was told about it holds.
    """
    if any(session.sparkContext.getConf().contains(key) for key in _COMPILING):
        yield
        return
    pays = size >= COMPILED_FROM_BYTES
    for key, value in zip(_COMPILING, ("true", "FALLBACK") if pays else ("false", "NO_CODEGEN"), strict=True):
        session.conf.set(key, value)
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
            for key in _COMPILING:
                session.conf.unset(key)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """SIGTERM and SIGINT wait until Spark's JVM is up, and never reach it, also where they go to the whole group.

    A process that ended in between would leave a JVM behind that nobody knows of. The JVM keeps ignoring what it was
    started to ignore, and ends with this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: set[int] = set()
    before = {number: signal.signal(number, lambda got, _: waiting.add(got)) for number in _STOPPING}
    _starting.set()
    try:
        yield
    finally:
        _starting.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
        for came in waiting:
            signal.raise_signal(came)


def _ignore_in_child() -> None:
    if _starting.is_set():
        for number in _STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _is_no_interrupted_call(record: logging.LogRecord) -> bool:
    """The gateway logs a call that Ctrl-C interrupts, stack and all; whoever catches it tells it in one line."""
    return "while sending command" not in str(record.msg)


_starting = threading.Event()
os.register_at_fork(after_in_child=_ignore_in_child)
