"""Which Spark a job uses that was started by a plain `python`, and how its queries run."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from onceover.config.os_user import name_user
from onceover.errors import ConfigurationError
from onceover.spark import session
from onceover.spark.session import COMPILED_FROM_BYTES, choose_codegen

pytestmark = pytest.mark.spark


def test_cluster_that_smuggles_options_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "MASTER", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ONCEOVER_SPARK", "spark://host:7077 --conf spark.jars=x")
    with pytest.raises(ConfigurationError, match="set ONCEOVER_SPARK to spark://HOST:PORT"):
        session.build("test")


def test_tasks_act_on_hdfs_as_the_user_of_the_driver(spark: SparkSession) -> None:
    names = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get("HADOOP_USER_NAME"))
    assert names.collect() == [name_user()], "on a cluster, the worker's own user is another"


def test_query_of_few_bytes_is_interpreted(spark: SparkSession) -> None:
    plans = []
    for size in (COMPILED_FROM_BYTES - 1, COMPILED_FROM_BYTES):
        with choose_codegen(spark, size):
            rows = spark.range(3).selectExpr("id + 1")
            assert len(rows.collect()) == 3
            plans.append(rows._jdf.queryExecution().executedPlan().toString())
    assert ["*(1)" in plan for plan in plans] == [False, True]


def test_option_set_by_spark_submit_stays() -> None:
    given = Mock()
    given.sparkContext.getConf.return_value.contains = {"spark.sql.codegen.wholeStage"}.__contains__
    with choose_codegen(given, 0):
        pass
    given.conf.set.assert_not_called()
    given.conf.unset.assert_not_called()


def test_session_option_is_restored_afterwards(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    with choose_codegen(spark, 0):
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
    assert spark.conf.get("spark.sql.codegen.wholeStage") == before


@pytest.mark.parametrize(("mask", "by_files"), [(0o022, True), (0o077, True), (0o002, False), (0o000, False)])
def test_sockets_of_spark_submit_need_a_umask(monkeypatch: pytest.MonkeyPatch, mask: int, by_files: bool) -> None:
    monkeypatch.setenv(session.UNDER_SUBMIT, "1")
    before = os.umask(mask)
    try:
        doors = session._choose_doors("local[2]")
    finally:
        assert os.umask(before) == mask
    assert ("spark.python.unix.domain.socket.enabled" in doors) == by_files
