"""The program that makes the class archive: runs the steps of ingest's, repair's and audit's plans on a few records,
and has Java keep the classes loaded. `python -m onceover.cli.make_class_archive`; takes as long as one cold job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from onceover.audit.comparison import Bounds, aggregate_held, count_windows, judge
from onceover.audit.log_and_raw import hold, select_held
from onceover.model.contract import Contract, Contracts, Key, Measure
from onceover.model.digest import HALVES
from onceover.model.offsets import GENERATION_DIGITS, KafkaPartition, OffsetRange
from onceover.spark.aggregate import aggregate
from onceover.spark.class_archive import ARCHIVE, OPTIONS
from onceover.spark.contract_check import check_contract
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.interpret import interpret
from onceover.spark.session import build

_RUN = "--run"
_SOURCE = KafkaPartition("0" * GENERATION_DIGITS, 0)
_CONTRACT = Contract(
    topic="classes",
    window_minutes=60,
    format="json",
    schema="at BIGINT, kind STRING, amount INT",
    required=("at",),
    event_time="value.at",
    tombstone="quarantine",
    keys=(Key("kind", "value.kind"),),
    measures=(Measure("events", "count", "*"), Measure("total", "sum", "value.amount")),
    horizon_ms=None,
    skew_ms=None,
)


def make(archive: Path = ARCHIVE) -> None:
    """Write the archive, whole or not at all. Raises CalledProcessError; Spark's message is on standard error."""
    fresh = archive.with_name(f"{archive.name}.{os.getpid()}")
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Otherwise Java logs every class that it leaves out, a thousand of them.
        OPTIONS: f'"-XX:ArchiveClassesAtExit={fresh}" -Xlog:disable',
    }
    try:
        subprocess.run([sys.executable, "-m", __spec__.name, _RUN], env=environment, check=True)
        fresh.chmod(0o644)  # for every user of this installation
        fresh.replace(archive)
    finally:
        fresh.unlink(missing_ok=True)


def _run() -> None:
    spark = build("class archive")
    _use(spark)
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends with its standard input, and writes the archive then
    gateway.proc.wait()


def _use(spark: SparkSession) -> None:
    columns = check_contract(spark, _CONTRACT)
    value = """concat('{"at":', id, ',"kind":"a","amount":1}')"""
    records = spark.range(100).mapInArrow(lambda batches: batches, "id BIGINT").selectExpr(
        "0 AS kafka_partition", "id AS offset", "id AS kafka_timestamp", "CAST(NULL AS BINARY) AS key",
        "CAST(NULL AS BINARY) AS headers", f"CAST({value} AS BINARY) AS value",
    )  # fmt: skip
    contracts, whole = Contracts((_CONTRACT,)), [OffsetRange(_SOURCE, 0, 100)]
    read = records.transform(interpret(_CONTRACT)).withColumns(
        {
            "generation": F.lit(_SOURCE.generation),
            "leader_epoch": F.lit(0),
            **{half: F.lit(0).cast("bigint") for half in HALVES},
        }
    )
    log = select_held(read, contracts, in_kafka=True, file_ms=F.lit(None).cast("bigint"))
    raw = select_held(read, contracts, in_kafka=False, file_ms=F.lit(0).cast("bigint"))
    held = hold([log, raw], None, None).persist()
    judged = judge(held, Bounds(whole, (), (), whole, ()), is_compacted=False)
    count_windows(judged)
    list(format_copy_lines(aggregate_held(judged, _CONTRACT), columns.names))
    held.unpersist()
    list(format_copy_lines(read.transform(aggregate(_CONTRACT)), columns.names))


if __name__ == "__main__":
    _run() if sys.argv[1:] == [_RUN] else make()
