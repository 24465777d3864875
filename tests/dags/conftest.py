"""This repository's DAGs, read into a throwaway Airflow home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.airflow_home import DAGS, make_project, name_airflow_home

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
