"""A throwaway Airflow home, and a project's home beside it, for tests that run Airflow in this process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

DAGS = Path(__file__).parents[1] / "dags"
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


def name_airflow_home() -> None:
    """Name it before Airflow is first imported; once a process, whichever folder's tests come first."""
    if "ONCEOVER_TEST_AIRFLOW_HOME" in os.environ:
        return
    home = tempfile.mkdtemp(prefix="onceover-airflow-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ.update(
        ONCEOVER_TEST_AIRFLOW_HOME=home,
        AIRFLOW_HOME=home,
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__DAGS_FOLDER=str(DAGS),
        AIRFLOW__CORE__PLUGINS_FOLDER=str(DAGS.parent / "plugins"),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=home + "/logs",
    )


def make_project(folder: Path, environment: pytest.MonkeyPatch) -> Path:
    """The folder as a project's home with the pipelines `events` and `orders`, named in the environment."""
    (folder / "pipelines").mkdir()
    for name in ("events", "orders"):
        (folder / "pipelines" / f"{name}.toml").write_text(PIPELINE)
    environment.setenv("ONCEOVER_HOME", str(folder))
    environment.delenv("ONCEOVER_PIPELINES", raising=False)
    return folder
