"""One point of the benchmark `growth`, a process of its own: `python -m bench.growth_point FILES MASTER RUNS`.

Prints a JSON object: the seconds of Onceover's runs and of naive Spark's, processor seconds, the most memory, and
whether all rows were equal.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path

from bench.peak_memory import PeakMemory
from bench.processor_time import Processes
from bench.repair import Runs, rebuild
from bench.repair_peers import aggregate_by_spark
from bench.table import alternate, middle
from bench.window_text import WindowText
from onceover.config.endpoints import address, locate_hdfs
from onceover.spark.session import open_session
from onceover_local.stack import Stack

DRIVER_MEMORY = "1g"


def main(files: Path, master: str, runs: int) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {master} --driver-memory {DRIVER_MEMORY} pyspark-shell"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    text: WindowText = pickle.loads(files.read_bytes())
    urls = [address("hdfs").rstrip("/") + each.path for each in text.files.values()]
    stack = Stack(Path(os.environ["ONCEOVER_LOCAL"]))
    with open_session("bench growth") as spark:
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        processes = Processes(jvm, [stack.find_pid(name) for name in ("namenode", "datanode1")])
        with PeakMemory(jvm) as memory:
            ours = Runs(lambda: rebuild(spark, text, locate_hdfs()), processes)
            first = ours.measure()
        naive = Runs(lambda: aggregate_by_spark(spark, urls), processes)
        of_ours, of_naive = alternate(ours.measure, naive.measure, runs)
    print(
        json.dumps(
            {
                "first": first,
                "ours": middle(of_ours),
                "naive": middle(of_naive),
                "processor_ours": middle([used.own for used in ours.used[2:]]),
                "processor_naive": middle([used.own for used in naive.used[1:]]),
                "jvm_mib": memory.jvm / 2**20,
                "workers_mib": memory.workers / 2**20,
                "equal": all(rows == ours.rows[0] for rows in (*ours.rows, *naive.rows)),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
