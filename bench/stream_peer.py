"""Structured Streaming as a peer of ingest: Kafka's records by Spark's own connector into text files by window."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jgo.config import GlobalSettings
from jgo.maven import MavenContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

JARS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)


def fetch_connector() -> list[Path]:
    """Return the connector's jars from the local Maven repository or the net; none if any cannot be fetched."""
    settings = GlobalSettings.load()
    context = MavenContext(repo_cache=settings.repo_cache, remote_repos=settings.repositories or None)
    jars: list[Path] = []
    for group, artifact, version in (jar.split(":") for jar in JARS):
        try:
            jars.append(context.project(group, artifact).at_version(version).artifact().resolve())
        except Exception as error:  # noqa: BLE001 - of the net, of XML: then there is no such peer
            print(f"  without Structured Streaming: {artifact} {version} cannot be fetched ({type(error).__name__})")
            return []
    return jars


def set_submit_args(options: str, jars: list[Path]) -> None:
    """Give the next Spark session of this process these options and jars."""
    given = f"--jars {','.join(map(str, jars))} " if jars else ""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{options} {given}pyspark-shell")


def write_by_window(spark: SparkSession, bootstrap: str, topic: str, path: str, minutes: int) -> None:
    """Write the values of the whole topic below `path`, a folder a window, as one streaming batch does."""
    records = (
        spark.readStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"})
        .load()
    )
    value = F.col("value").cast("string")
    at = F.from_json(value, "at BIGINT, kind STRING, amount INT")["at"]
    placed = records.select(value.alias("value"), F.floor(at / (minutes * 60_000)).alias("window"))
    query = placed.writeStream.format("text").partitionBy("window").option("checkpointLocation", f"{path}.checkpoint")
    query.trigger(availableNow=True).start(path).awaitTermination()
