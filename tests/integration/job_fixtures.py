"""The fixtures of tests whose jobs each have a Spark of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cluster_jobs import Jobs, open_jobs


@pytest.fixture(scope="module")
def spark_session() -> None:
    """Return None: each job has a driver of its own."""


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with open_jobs(tmp_path) as made:
        yield made
