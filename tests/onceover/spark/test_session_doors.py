"""What another user of the machine can reach of a driver: its ports on loopback, its files in the folder for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.spark_door import RPC_FAILURE, ask

pytestmark = pytest.mark.spark

SHUFFLED = """
import os, sys
from onceover.spark.session import build
session = build("test")
session.range(1000).repartition(3).sortWithinPartitions("id").write.format("noop").mode("overwrite").save()
for folder, names, files in os.walk(sys.argv[1]):
    for each in (*names, *files):
        print(oct(os.lstat(os.path.join(folder, each)).st_mode), os.path.join(folder, each))
print("umask", oct(os.umask(0)))
"""


@pytest.fixture
def ports(spark: SparkSession) -> dict[str, int]:
    context: Any = spark.sparkContext._jsc.sc()
    return {
        "rpc": int(spark.sparkContext.getConf().get("spark.driver.port") or 0),
        "blocks": context.env().blockManager().blockManagerId().port(),
    }


@pytest.mark.parametrize("door", ["rpc", "blocks"])
def test_driver_refuses_a_caller_without_its_secret(ports: dict[str, int], door: str) -> None:
    kind, answer = ask("127.0.0.1", ports[door], b"\0" * 16)
    assert kind == RPC_FAILURE
    assert "SASL" in answer


def test_python_workers_listen_to_this_user_alone(spark: SparkSession) -> None:
    spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
    jvm: Any = spark.sparkContext._gateway
    workers = psutil.Process(jvm.proc.pid).children(recursive=True)
    processes = [psutil.Process(), *workers]  # here Spark's accumulators are
    sockets = {each.laddr for process in processes for each in process.net_connections("unix") if each.laddr}
    assert len(sockets) > 1
    assert [path for path in sockets if os.stat(path).st_mode & 0o077] == []
    listening = [each for worker in workers for each in worker.net_connections("tcp") if each.status == "LISTEN"]
    assert listening == []


@pytest.mark.rare
def test_files_of_a_driver_are_its_user_s_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.umask(0o022)\n{SHUFFLED}", str(tmp_path)],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"},
        capture_output=True,
        text=True,
        check=True,
    )
    *files, umask = done.stdout.splitlines()
    assert [each for each in files if each.endswith(".data")], done.stdout
    assert [each for each in files if int(each.split()[0], 8) & 0o077] == []
    assert umask == "umask 0o22", "what Python writes is as before"
