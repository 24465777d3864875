"""A folder keeps its kind: three DataNodes and Spark, or one DataNode and none. Nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from onceover.errors import UsageError
from onceover_local.stack import GROUPS, Stack


def test_cluster_folder_stays_a_cluster(tmp_path: Path) -> None:
    assert Stack(tmp_path).groups == GROUPS
    assert Stack(tmp_path, cluster=True).up(set()) == []
    found = Stack(tmp_path)
    assert found.groups == (*GROUPS, "spark")
    names = {part.name for part in found.list_statuses()}
    assert names >= {"datanode1", "datanode2", "datanode3", "spark-master", "spark-worker1", "spark-worker2"}


def test_stack_without_a_cluster_has_no_spark_to_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the stack has no part spark"):
        Stack(tmp_path).up({"spark"})
    assert {part.name for part in Stack(tmp_path).list_statuses()} & {"datanode2", "spark-master"} == set()
