"""What `onceover doctor` looks at: each part of the deployment, its settings, and what the ledger says of pipelines."""

from onceover.cli.checks.airflow import airflow
from onceover.cli.checks.clocks import clocks
from onceover.cli.checks.hdfs import hdfs
from onceover.cli.checks.kafka import kafka
from onceover.cli.checks.machine import disk, java, pins, ports
from onceover.cli.checks.offsets import offsets
from onceover.cli.checks.outcome import Outcome
from onceover.cli.checks.postgres import postgres
from onceover.cli.checks.spark import spark

__all__ = [
    "Outcome", "airflow", "clocks", "disk", "hdfs", "java", "kafka", "offsets", "pins", "ports", "postgres", "spark",
]  # fmt: skip
