"""The embedded parts for demo and tests: Kafka, HDFS, PostgreSQL and Airflow as plain processes under one folder."""

from onceover_local.stack.part import PartStatus
from onceover_local.stack.stack import Stack
from onceover_local.stack.waves import GROUPS

__all__ = ["GROUPS", "PartStatus", "Stack"]
