"""`onceover stack`, registered as an entry point: the embedded Kafka, HDFS, PostgreSQL and Airflow."""

from __future__ import annotations

from onceover.cli.lazy import make_group

app = make_group(
    "stack",
    __name__,
    "Run",
    ("up", "down", "status"),
    "Start, stop and inspect the embedded Kafka, HDFS, PostgreSQL and Airflow.",
)
