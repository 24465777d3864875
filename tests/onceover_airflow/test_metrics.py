"""The counts of a repair, sent by Airflow's own metrics to a StatsD that listens."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from tests.programs import run_python

pytestmark = pytest.mark.airflow

# A process of its own, as a task is: Airflow's client keeps its socket until that ends.
CONFIRM = """
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from contextlib import contextmanager
from types import SimpleNamespace
from onceover.repair import confirmation
from onceover.repair.confirmation import Confirmation
from onceover_airflow.operators import repair
from onceover_airflow.pipeline_operator import PipelineOperator


@contextmanager
def open_without_ledger(self, purpose):
    yield SimpleNamespace(name=self.pipeline, ledger=None)


stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)  # as Airflow's task runner does
confirmation.confirm = lambda context, request_id: Confirmation(
    context.name, request_id, ("w1", "w2"), (), (("w3", "HDFS was away"),), (), (), (), 5, 1200
)
repair.announce_soon = lambda context, ledger, pipelines: None
PipelineOperator.open = open_without_ledger
repair.ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": 7}).execute({})
"""


def sent(project: Path, **settings: str) -> list[str]:
    """The packets at a UDP socket while a request is confirmed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        environment = {
            **os.environ,
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(listening.getsockname()[1]),
            **settings,
        }
        run_python("-c", CONFIRM, environment=environment)
        listening.setblocking(False)
        arrived = []
        while True:
            try:
                arrived.append(listening.recv(65_536).decode())
            except BlockingIOError:
                return [each for each in arrived if "onceover" in each]


def test_repair_counts_reach_statsd(project: Path) -> None:
    assert sent(project, AIRFLOW__METRICS__STATSD_ON="True", AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED="True") == [
        "airflow.onceover.windows_confirmed,pipeline=events:2|c",
        "airflow.onceover.windows_failed,pipeline=events:1|c",
        "airflow.onceover.duplicates_removed,pipeline=events:5|c",
        "airflow.onceover.lines_read,pipeline=events:1200|c",
    ]


def test_metrics_that_are_off_send_nothing(project: Path) -> None:
    assert sent(project) == []
