"""What Spark's own tools do with the same records: Structured Streaming reads Kafka with its JVM connector and writes
the values as text, a folder a window."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover_local.stack.jars import fetch_class_path

WINDOW_MS = 3_600_000
_VALUE = 3  # of the fields of a line that TABs part


def list_connector_jars() -> str:
    """Return the connector's jars as spark-submit takes them; fetches what is missing."""
    return fetch_class_path("spark-kafka", lambda part, what: None).replace(":", ",")


def write_by_window(spark: SparkSession, bootstrap: str, topic: str, path: str) -> None:
    """Write all of the topic's values below the path, in one batch of Structured Streaming."""
    at = F.get_json_object("value", "$.at").cast("bigint")
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.col("value").cast("string").alias("value"))
        .withColumn("window", F.floor(at / WINDOW_MS))
    )
    writer = rows.writeStream.format("text").partitionBy("window").option("checkpointLocation", f"{path}-checkpoint")
    writer.option("path", path).trigger(availableNow=True).start().awaitTermination()


def digest_by_window(spark: SparkSession, path: str) -> Mapping[int, tuple[int, int]]:
    """Return by window the count of the values that the peer wrote, and a sum of their hashes."""
    return _digest(spark.read.text(path))


def digest_lines(spark: SparkSession, path: str) -> Mapping[int, tuple[int, int]]:
    """Return the same of the values in Onceover's window files."""
    lines = spark.read.text(path, recursiveFileLookup=True, pathGlobFilter="*.log").where("value <> ''")
    value = F.split("value", "\t")[_VALUE]
    at = F.get_json_object(value, "$.at").cast("bigint")
    return _digest(lines.select(value.alias("value"), F.floor(at / WINDOW_MS).alias("window")))


def _digest(rows: DataFrame) -> Mapping[int, tuple[int, int]]:
    summed = rows.groupBy("window").agg(F.count("*").alias("n"), F.sum(F.hash("value").cast("bigint")).alias("h"))
    return {int(row.window): (row.n, row.h) for row in summed.collect()}
