"""A throwaway Airflow home, named before Airflow is first imported; tests/dags uses the same when both run."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's home with the pipelines `events` and `orders`."""
    (tmp_path / "pipelines").mkdir()
    for name in ("events", "orders"):
        (tmp_path / "pipelines" / f"{name}.toml").write_text(PIPELINE)
    monkeypatch.setenv("ONCEOVER_HOME", str(tmp_path))
    monkeypatch.delenv("ONCEOVER_PIPELINES", raising=False)
    return tmp_path
