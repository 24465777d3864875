"""The Spark session, with the settings that the meaning of pipeline SQL and of an append depends on."""

from __future__ import annotations

import logging
import os
import sys

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

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
    "spark.ui.showConsoleProgress": "false",  # spark-submit turns it on for Python, and it garbles our own
}
_UNLESS_GIVEN = {
    "spark.ui.enabled": "false",  # it listens on all addresses
    "spark.sql.shuffle.partitions": "8",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "MASTER")  # a master may be named there


def build(app_name: str) -> SparkSession:
    """A session of that name; the master is spark-submit's, or `local[*]` under a plain `python`.

    What spark-submit or spark-defaults.conf say about the UI and shuffle partitions holds; the rest is set here.
    """
    if not any(name in os.environ for name in _ELSEWHERE):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # read when the JVM starts
    # Spark would start whatever `python3` is on PATH, which need not have this library.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # An analysis error is told in one line; pyspark would log its whole JVM stack besides.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    SparkContext._ensure_initialized()  # only now does SparkConf know what spark-submit was given
    given = SparkConf()
    softly = _UNLESS_GIVEN
    if str(given.get("spark.master", "local")).startswith("local"):
        softly = softly | _LOOPBACK
    builder = SparkSession.builder.appName(app_name)
    for key, value in ({k: v for k, v in softly.items() if not given.contains(k)} | _NEEDED | MEANING).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
