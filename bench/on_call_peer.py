"""The script that one would write to correct a window: its file, without duplicates, replaces the window's rows.

python -m bench.on_call_peer FILE START
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from bench.repair_peers import aggregate_by_spark
from onceover.config.endpoints import address
from onceover.ledger.database import connect

TABLE = "public.bench_on_call_peer"


def main(file: str, start: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    rows = [line.split("\t") for line in aggregate_by_spark(spark, [file])]
    spark.stop()
    with connect(address("postgres"), "bench") as connection, connection.transaction():
        connection.execute(f"DELETE FROM {TABLE} WHERE start = %s", [start])
        connection.cursor().executemany(f"INSERT INTO {TABLE} VALUES (%s, %s, %s, %s, %s)", rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
