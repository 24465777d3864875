from __future__ import annotations

from pathlib import Path

import pytest
from tests.airflow_home import make_project, name_airflow_home

name_airflow_home()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's home with the pipelines `events` and `orders`."""
    return make_project(tmp_path, monkeypatch)
