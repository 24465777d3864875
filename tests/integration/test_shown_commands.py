"""Each command that README and docs show, run as it is shown: it ends and prints what its reader expects.

The steps of a table follow each other: what one leaves is what the next one finds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.docs.shell import Shell, Step, shell
from tests.docs.steps import JOBS, LOOKS
from tests.integration.flights_day import plant, produce_day
from tests.integration.lane import Lane

from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]


@pytest.fixture(scope="module")
def looked_at(stack: Stack, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    changed = {'idle_after = "5s"': 'idle_after = "1ms"', 'retention = "none"': 'retention = "400d"'}
    with shell(tmp_path_factory.mktemp("shown") / "pipelines", "looked_at", changed) as made:
        with made.entered():
            made.values |= plant(Lane("flights", "looked_at", spark_session, made.folder / "flights.toml"))
        yield made


@pytest.fixture(scope="module")
def worked_on(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("shown") / "pipelines", "worked_on", {}) as made:
        produce_day("worked_on")
        yield made


@pytest.mark.parametrize("step", LOOKS, ids=str)
def test_command_that_looks_or_decides_ends_as_shown(looked_at: Shell, step: Step) -> None:
    looked_at.follow(step)


@pytest.mark.parametrize("step", JOBS, ids=str)
def test_command_that_starts_a_job_ends_as_shown(worked_on: Shell, step: Step) -> None:
    worked_on.follow(step)
