"""OpenLineage's provider: emits a repair's lineage where it is configured, is silent where it is not, and may be
absent. tests/integration checks the events of a real repair."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.airflow_home import DAGS
from tests.programs import run_python

from onceover_airflow.operators.repair import RepairOperator

pytestmark = pytest.mark.airflow

ABSENT = """
import importlib.metadata
import sys

import importlib_metadata

NAMES = ("openlineage", "apache-airflow-providers-openlineage")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "openlineage" or name.startswith("airflow.providers.openlineage"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for module in (importlib.metadata, importlib_metadata):  # Airflow finds its providers by what is installed

    def distributions(_all=module.distributions, **context):
        return (each for each in _all(**context) if not (each.metadata["Name"] or "").lower().startswith(NAMES))

    module.distributions = distributions
from airflow.dag_processing.dagbag import DagBag
from onceover_airflow.operators.repair import RepairOperator

bag = DagBag(sys.argv[1])
sys.executable = sys.argv[2]
RepairOperator(task_id="repair", pipeline="events", detection={"request_id": 12}).execute({})
print("loaded", len(bag.dags), bag.import_errors)
"""
LISTENERS = """
from airflow.providers.openlineage.plugins.openlineage import OpenLineageProviderPlugin

print("listeners", len(OpenLineageProviderPlugin.listeners))
"""


def last_line(program: str, *arguments: str, **settings: str) -> str:
    """The last line that a Python process of its own prints."""
    environment = {name: value for name, value in os.environ.items() if "OPENLINEAGE" not in name} | settings
    return run_python("-c", program, *arguments, environment=environment).splitlines()[-1]


def test_dags_load_and_repair_without_the_lineage_provider(project: Path) -> None:
    submit = project / "spark-submit"
    submit.write_text(f'#!/bin/sh\necho "$@" >{project}/submitted\n')
    submit.chmod(0o755)
    spark = '{"conn_type": "spark", "host": "local[*]"}'

    said = last_line(ABSENT, str(DAGS), str(project / "python"), AIRFLOW_CONN_SPARK_DEFAULT=spark)

    assert said == f"loaded {len(list(DAGS.glob('*.py')))} {{}}"
    assert (project / "submitted").read_text().endswith("jobs/repair.py --pipeline events --request 12\n")


@pytest.mark.parametrize(
    ("settings", "listeners"), [({}, 0), ({"AIRFLOW__OPENLINEAGE__TRANSPORT": '{"type": "console"}'}, 1)]
)
def test_listener_is_on_with_a_transport_alone(project: Path, settings: dict[str, str], listeners: int) -> None:
    assert last_line(LISTENERS, **settings) == f"listeners {listeners}"


def test_repair_without_a_requester_has_no_lineage() -> None:
    found = RepairOperator(
        task_id="repair", pipeline="events", detection={"request_id": None}
    ).get_openlineage_facets_on_complete(None)

    assert (found.inputs, found.outputs) == ([], [])
