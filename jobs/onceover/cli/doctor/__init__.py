"""The checks of `onceover doctor`: each service of the deployment, its settings, and the state of each pipeline."""

from onceover.cli.doctor.airflow import check_airflow
from onceover.cli.doctor.clocks import check_clocks
from onceover.cli.doctor.hdfs import check_hdfs
from onceover.cli.doctor.kafka import check_kafka
from onceover.cli.doctor.machine import check_disk, check_java, check_pins
from onceover.cli.doctor.offsets import check_offsets
from onceover.cli.doctor.outcome import Outcome
from onceover.cli.doctor.postgres import check_postgres
from onceover.cli.doctor.registry import check_registry
from onceover.cli.doctor.roots import check_roots
from onceover.cli.doctor.spark import check_spark

__all__ = [
    "Outcome", "check_airflow", "check_clocks", "check_disk", "check_hdfs", "check_java", "check_kafka",
    "check_offsets", "check_pins", "check_postgres", "check_registry", "check_roots", "check_spark",
]  # fmt: skip
