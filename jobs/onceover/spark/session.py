"""The Spark session, with the settings that the meaning of pipeline SQL and of an append depends on."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from onceover.config import endpoints
from onceover.config.os_user import name_user, require_passwd_entry
from onceover.errors import ConfigurationError, SparkLostError
from onceover.spark import class_archive, warm_up
from onceover.spark.failure import reject_unblamed, summarize
from onceover.spark.jvm_messages import filter_messages
from onceover.spark.private_files import keep_files_private, keeps_others_out
from onceover.spark.task_progress import log_start, log_tasks

_STOPPING = (signal.SIGTERM, signal.SIGINT)
MEANING = {  # the same SQL must mean the same when a window is ingested and when it is rebuilt, years later
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # of our own SQL; a contract's is analyzed in ANSI mode
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.variant.validateUnicodeInJsonParsing": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # EXCEPTION throws where older versions of Spark read otherwise
    "spark.sql.json.enablePartialResults": "true",  # else one field of another type looks like broken JSON
}
OLD_MEANING = "spark.sql.legacy."
"""Settings of that name give SQL the meaning that it had in an earlier version of Spark."""
_NEEDED = {
    "spark.speculation": "false",  # a second try of a task that appends, while the first still runs, appends twice
    # The kernels' cost a batch is that of 1,000 records; a record of 32 MiB is a batch of its own.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    # Tells the JVM the Python line of each column expression, which more than doubles the calls of a plan's making.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Nothing of ours is partitioned. To find that out at a join, Spark writes the key as SQL of the columns below: its
    # size is exponential in a contract's fields, and takes minutes, or the JVM's whole memory.
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    # A StackOverflowError or OutOfMemoryError, of one record maybe, fails its task and not the JVM.
    "spark.executor.killOnFatalError.depth": "0",
    # As SQL sets it, so that the worker which `warm_up` starts is one for SQL.
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
    "spark.ui.showConsoleProgress": "false",  # spark-submit turns it on for Python, and it garbles our own
}
_UNLESS_GIVEN = {
    "spark.ui.enabled": "false",  # it listens on all addresses
    "spark.sql.shuffle.partitions": "8",
    # Python workers keep the memory of arrays: to give it back and get it again took a sixth of a repair's reading.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    # YARN ends an application at its fourth lost executor, or second lost master, and an ingest never ends.
    "spark.executor.failuresValidityInterval": "1h",
    "spark.yarn.am.attemptFailuresValidityInterval": "1h",
}
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# Linux 6.18 may drop the acknowledgements of a TCP connection both of whose buffers are full: both sides wait for ever.
_BY_FILES = {"spark.python.unix.domain.socket.enabled": "true"}
"""Python workers are reached by sockets in the folder for temporary files, which the umask closes to others."""
_ASKING = {"spark.authenticate": "true"}
"""Another user's process that connects to the driver's ports must prove that it knows the application's secret."""
COMPILED_FROM_BYTES = 8 << 20
"""Both took the same time at 13 MiB, 100,000 lines; 8 leaves room for faster disks and processors."""
_COMPILING = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "MASTER")  # a master may be named there
UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"
_OWN_SECRET = re.compile(r"local(\[[^\]]*\])?")
_MASTER = re.compile(r"[A-Za-z0-9:/.,_*\[\]-]+")


def build(app_name: str, *, is_brief: bool = False) -> SparkSession:
    """Return a session of that name; the master is spark-submit's, or under a plain `python` the cluster of
    `onceover.config.endpoints`, else `local[*]`. With `is_brief`, for a job that reads raw and mostly takes as long as
    Spark's start, a worker of Python starts beside, and Java compiles as `make_driver_options` says.

    Options of spark-submit and spark-defaults.conf for the UI, shuffle partitions, authentication and local folders
    hold; the rest is set here. Raises ConfigurationError if the cluster's address is not a Spark master, or if its
    secret cannot be read, SparkLostError if the JVM dies meanwhile.
    """
    with _explain_death():
        return _build(app_name, is_brief)


def _build(app_name: str, is_brief: bool) -> SparkSession:
    gc.set_threshold(50_000)  # a repair's driver holds a million objects at once, and hardly makes garbage
    require_passwd_entry()
    # A folder of settings may name a master, over which this variable goes, as --master does.
    is_left_to_settings = "SPARK_CONF_DIR" in os.environ and "ONCEOVER_SPARK" not in os.environ
    if not is_left_to_settings and not any(name in os.environ for name in _ELSEWHERE):
        cluster = None if UNDER_SUBMIT in os.environ else endpoints.find_address("spark")
        if cluster is not None:
            _require_master(cluster)
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {cluster} pyspark-shell"
        if cluster is None or "//127.0.0.1:" in cluster:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # read when the JVM starts
    # Spark would start the `python3` on PATH, which may lack this library.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.update(class_archive.make_driver_options(os.environ, is_brief=is_brief))
    # Analysis errors are reported in one line; pyspark would log their JVM stacks too.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_keep_log_record)
    if SparkContext._gateway is None:  # before its start, SparkConf lacks the options of spark-submit
        with _defer_signals(), keep_files_private(), filter_messages() as stderr:
            gateway = launch_gateway(popen_kwargs={"stderr": stderr})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)
    warm_up.load_functions()
    given = SparkConf()
    own = {"spark.executorEnv.HADOOP_USER_NAME": name_user()}  # a cluster's workers are of another user
    softly = _UNLESS_GIVEN | own | _choose_doors(str(given.get("spark.master", "local")))
    builder = SparkSession.builder.appName(app_name)
    login = class_archive.make_kerberos_options(os.environ)
    java = " ".join([*login, given.get(_EXECUTOR_JAVA) or "", "-Duser.language=en -Duser.country=US"]).strip()
    fixed = _NEEDED | MEANING | {_EXECUTOR_JAVA: java}
    chosen = {k: v for k, v in softly.items() if not given.contains(k)} | fixed
    for key, value in chosen.items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    with log_start(str(given.get("spark.master", "local"))), keep_files_private():
        context = SparkContext.getOrCreate(given.setAppName(app_name).setAll([*chosen.items()]))
    context.setLogLevel("ERROR")  # before a task runs: while the level changes, Spark logs all
    if is_brief:
        warm_up.start_worker(context)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's own handler calls the JVM in the middle of another call
    # `upper` and `lower` follow the JVM's locale, in which a Turkish i has its dot.
    jvm: Any = session._jvm
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.US)
    return session


def _require_master(cluster: str) -> None:
    if not _MASTER.fullmatch(cluster):
        raise ConfigurationError(f"{cluster!r} is not a Spark master; set ONCEOVER_SPARK to spark://HOST:PORT, or yarn")
    if cluster == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise ConfigurationError(
            "ONCEOVER_SPARK=yarn needs HADOOP_CONF_DIR: set it to the folder of the client's core-site.xml and "
            "yarn-site.xml, which name the ResourceManager"
        )


def read_zone_data(session: SparkSession) -> str:
    """Return the release of the JVM's time zone data, such as `2025b`."""
    jvm: Any = session._jvm
    return str(jvm.java.time.zone.ZoneRulesProvider.getVersions("UTC").lastEntry().getKey())


def _choose_doors(master: str) -> dict[str, str]:
    """Return who may connect to an application of that master."""
    if master == "yarn":  # Spark makes a secret for each application, and YARN hands it to the executors
        return _ASKING
    if master.startswith("local"):
        asking = _ASKING if _OWN_SECRET.fullmatch(master) else {}  # there Spark makes one, too
        is_private = UNDER_SUBMIT not in os.environ or keeps_others_out()  # else the JVM has the umask of spark-submit
        return _LOOPBACK | asking | (_BY_FILES if is_private else {})
    secret = endpoints.find_spark_secret(master)
    return {} if secret is None else _ASKING | {"spark.authenticate.secret": secret}


@contextmanager
def open_session(app_name: str, *, is_brief: bool = False) -> Iterator[SparkSession]:
    """Open a session as `build` does, log the course of long jobs, and stop it at the end of the block. Raise
    SparkLostError if its JVM has died, or its application was ended, wherever the block notices that."""
    session = build(app_name, is_brief=is_brief)
    try:
        with log_tasks(session):
            yield session
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError(
            f"Spark's JVM of `{app_name}` has died; start it again, it resumes where it stopped"
        ) from error
    except (Py4JError, PySparkException) as error:
        reject_unblamed(error)
        raise
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died has nothing left to stop
            session.stop()


@contextmanager
def _explain_death() -> Iterator[None]:
    """Raise SparkLostError for an error of the block that says, in one of many ways, that the JVM died at its start."""
    try:
        yield
    except Py4JJavaError as error:  # the JVM itself answered
        master = SparkConf().get("spark.master", "local")
        if str(master).startswith("local"):
            raise
        raise SparkLostError(f"{master} did not start Spark's application: {summarize(error)}") from error
    except (Py4JError, ConnectionError, PySparkRuntimeError) as error:
        never_answered = isinstance(error, PySparkRuntimeError) and error.getCondition() == "JAVA_GATEWAY_EXITED"
        if not (never_answered or _has_died()):
            raise
        raise SparkLostError(
            "Spark's JVM died while it started; nothing is half-done, run this again. If it dies again, check Java and "
            "this machine's memory: `onceover doctor`"
        ) from error


def _has_died() -> bool:
    """Return whether the JVM that this process started has ended; False for one that it did not start."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with suppress(subprocess.TimeoutExpired):  # its sockets close a moment earlier
        process.wait(1.0)
    return process.poll() is not None


@contextmanager
def choose_codegen(session: SparkSession, size: int) -> Iterator[None]:
    """Compile the block's queries to Java, or interpret them if `size`, the bytes of raw that they read, is small.

    Generating and compiling the Java of a repair takes a cold driver 8 s. Options of spark-submit for this hold.
    """
    given = session.sparkContext.getConf()  # a copy, of 30 ms
    if any(given.contains(key) for key in _COMPILING):
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
def _defer_signals() -> Iterator[None]:
    """Defer SIGTERM and SIGINT until Spark's JVM is up, and keep them from the JVM, even if sent to the whole group.

    A process that ended in between would leave an orphaned JVM. The JVM ignores for ever the signals that it was
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
        for deferred in waiting:
            signal.raise_signal(deferred)


def _ignore_in_child() -> None:
    if _starting.is_set():
        for number in _STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _keep_log_record(record: logging.LogRecord) -> bool:
    """Return False for the gateway's log of a call that Ctrl-C interrupts, which its caller reports in one line."""
    return "while sending command" not in str(record.msg)


_starting = threading.Event()
os.register_at_fork(after_in_child=_ignore_in_child)
