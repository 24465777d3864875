"""The fixtures of tests on YARN, which share a cluster of one node a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cluster_jobs import Jobs, open_jobs
from tests.integration.yarn_cluster import YarnCluster, open_yarn

from onceover_local.stack import Stack


@pytest.fixture(scope="module")
def running(stack: Stack) -> Iterator[YarnCluster]:
    with open_yarn(stack) as cluster:
        yield cluster


@pytest.fixture
def yarn(running: YarnCluster) -> YarnCluster:
    running.start()
    running.write_defaults({})
    return running


@pytest.fixture
def jobs(yarn: YarnCluster, tmp_path: Path) -> Iterator[Jobs]:
    with open_jobs(tmp_path) as made:
        yield made
