"""A throwaway Airflow home, named before Airflow is first imported, and this repository's DAGs read into it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

if "ONCEOVER_TEST_AIRFLOW_HOME" not in os.environ:
    _home = tempfile.mkdtemp(prefix="onceover-airflow-")
    atexit.register(shutil.rmtree, _home, ignore_errors=True)
    os.environ.update(
        ONCEOVER_TEST_AIRFLOW_HOME=_home,
        AIRFLOW_HOME=_home,
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parents[2] / "dags"),
        AIRFLOW__CORE__PLUGINS_FOLDER=_home + "/plugins",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{_home}/airflow.db",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=_home + "/logs",
    )

DAGS = Path(__file__).parents[2] / "dags"

PIPELINE = """
[contract]
topic = "events"
window_minutes = 60
format = "json"
schema = "at STRING"
event_time = "to_timestamp(value.at)"
[contract.measures]
events = { count = "*" }
"""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project's home with the pipelines `events` and `orders`, named while the DAGs are read."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "pipelines").mkdir()
    for name in ("events", "orders"):
        (folder / "pipelines" / f"{name}.toml").write_text(PIPELINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONCEOVER_HOME", str(folder))
        patch.delenv("ONCEOVER_PIPELINES", raising=False)
        yield folder


@pytest.fixture
def dag_bag(home: Path) -> DagBag:
    """This repository's DAGs for the pipelines of `home`, read afresh: `dag.test` leaves a run's params in its DAG."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)
