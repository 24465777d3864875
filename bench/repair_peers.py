"""The same aggregates from the same window files by the recipes that one would write first: with Spark, with DuckDB."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
from hdfs_native import Client
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.window_text import MINUTES

THREADS = 2
_MS = MINUTES * 60_000


def aggregate_by_spark(spark: SparkSession, urls: Sequence[str]) -> list[str]:
    """Split the lines of these files, drop duplicates by ID, parse the JSON and group. Return rows as COPY lines."""
    fields = spark.read.text(list(urls)).where("value <> ''").select(F.split("value", "\t").alias("field"))
    records = fields.select(F.substring(F.col("field")[0], 1, 34).alias("id"), F.col("field")[3].alias("value"))
    sales = records.dropDuplicates(["id"]).select(
        F.from_json("value", "at BIGINT, shop STRING, cents BIGINT").alias("v")
    )
    start = F.timestamp_millis(F.col("v.at") - F.col("v.at") % _MS)
    grouped = sales.groupBy(start.alias("start"), F.col("v.shop").alias("shop")).agg(
        F.count("*").alias("sales"), F.sum("v.cents").alias("cents"), F.max("v.cents").alias("largest")
    )
    text = F.concat_ws(
        "\t", F.date_format("start", "yyyy-MM-dd HH:mm:ss'+00'"), "shop", "sales", "cents", "largest"
    ).alias("line")
    return [row.line for row in grouped.select(text).collect()]


def fetch_files(address: str, paths: Sequence[str], folder: Path) -> None:
    """Copy these files from HDFS into the folder, by THREADS threads, each with a client of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def copy(client: Client, path: str) -> None:
        with client.read(path) as reader, (folder / Path(path).name).open("wb") as file:
            file.writelines(reader.read_range_stream(0, len(reader)))

    def fetch(some: Sequence[str]) -> None:
        client = Client(address)
        for path in some:
            try:
                copy(client, path)
            except RuntimeError:  # now and then it says that all DataNodes failed, and the next read succeeds
                copy(client, path)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fetch, [paths[n::THREADS] for n in range(THREADS)]))


def aggregate_by_duckdb(folder: Path) -> list[str]:
    """Read the fields of all lines in the folder, keep one line an ID, parse the JSON and group. Return rows as COPY
    lines."""
    names = ["id", "key", "headers", "value", "event_time", "epoch", "contract", "c1", "c2", "c3", "c4", "hash"]
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    with duckdb.connect() as duck:
        duck.execute(f"SET threads = {THREADS}")
        rows = duck.execute(
            rf"""
            WITH record AS (
              SELECT any_value(value) AS value
              FROM read_csv('{folder}/*.log', columns = {{{columns}}}, auto_detect = false, header = false,
                delim = '\t', quote = '', escape = '')
              WHERE id IS NOT NULL GROUP BY substr(id, 1, 34)
            ), sale AS (
              SELECT json_transform(value, '{{"at": "BIGINT", "shop": "VARCHAR", "cents": "BIGINT"}}') AS v FROM record
            )
            SELECT concat_ws(chr(9), strftime(epoch_ms(v.at - v.at % {_MS}), '%Y-%m-%d %H:%M:%S+00'), v.shop,
              count(*), sum(v.cents), max(v.cents))
            FROM sale GROUP BY v.at - v.at % {_MS}, v.shop
            """
        ).fetchall()
    return [text for (text,) in rows]
