"""This repository's DAGs, read into a throwaway Airflow home."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.airflow_home import DAGS, make_project, name_airflow_home
from tests.dags.doubles import Library
from tests.programs import write_python_program

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

name_airflow_home()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project's home with the pipelines `events` and `orders`, named while the DAGs are read."""
    with pytest.MonkeyPatch.context() as patch:
        yield make_project(tmp_path_factory.mktemp("home"), patch)


@pytest.fixture
def dag_bag(home: Path) -> DagBag:
    """This repository's DAGs for the pipelines of `home`, read afresh: `dag.test` leaves a run's params in its DAG."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's own tables in the throwaway home."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def library(database: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[*]"}')
    return Library().patch(monkeypatch)


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that holds one line for each spark-submit."""
    submitted = tmp_path / "submitted"
    write_python_program(
        tmp_path / "spark-submit",
        f"""
        import sys
        with open({str(submitted)!r}, "a") as file:
            print(*sys.argv[-5:], file=file)
        """,
    )
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return submitted
