"""The checks of `onceover doctor`: each service of the deployment, its settings, and the state of each pipeline."""

from onceover.cli.doctor.airflow import airflow
from onceover.cli.doctor.clocks import clocks
from onceover.cli.doctor.hdfs import hdfs
from onceover.cli.doctor.kafka import kafka
from onceover.cli.doctor.machine import disk, java, pins
from onceover.cli.doctor.offsets import offsets
from onceover.cli.doctor.outcome import Outcome
from onceover.cli.doctor.postgres import postgres
from onceover.cli.doctor.spark import spark

__all__ = [
    "Outcome", "airflow", "clocks", "disk", "hdfs", "java", "kafka", "offsets", "pins", "postgres", "spark",
]  # fmt: skip
