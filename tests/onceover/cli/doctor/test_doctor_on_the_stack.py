"""Doctor's findings about real servers with wrong settings."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from onceover.cli import doctor as checks
from onceover.cli.doctor import Outcome, machine
from onceover.cli.doctor.hdfs import check_hdfs
from onceover.config import endpoints
from onceover.config.pipelines import find
from onceover.ledger.catalog import keep_log_retention
from onceover_local.airflow_rest import AirflowRest, wait_for
from onceover_local.stack import Stack
from onceover_local.stack import hdfs as embedded_hdfs

pytestmark = pytest.mark.stack


def reported(outcomes: Iterator[Outcome], state: str) -> str:
    return " | ".join(each.what for each in outcomes if each.state == state)


def topic_outcomes(plant: Any) -> list[Outcome]:
    return [each for each in checks.check_kafka([find(plant.name)]) if each.check == f"topic of {plant.name}"]


def create(topic: str, **config: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": endpoints.address("kafka")})
    config = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()
    return admin


def test_topic_that_would_lose_records_is_wrong_for_each_setting(run: Any, plant: Any) -> None:
    create(
        plant.name,
        unclean_leader_election_enable="true",
        message_timestamp_type="LogAppendTime",
        cleanup_policy="compact,delete",
        retention_ms="3600000",
    )
    answer = run("doctor", "--json")
    assert answer.exit_code == 1
    found = [each for each in json.loads(answer.stdout) if each["check"] == f"topic of {plant.name}"]
    for state, word in (
        ("wrong", "unclean.leader.election.enable=false"),
        ("wrong", "Kafka drops records after 1 h"),
        ("note", "message.timestamp.type=LogAppendTime"),
        ("note", "cleanup.policy=compact"),
    ):
        assert {each["state"] for each in found if word in each["what"]} == {state}, word


def test_broker_setting_counts_where_the_topic_has_none(plant: Any) -> None:
    admin = create(plant.name)
    assert [each.state for each in topic_outcomes(plant)] == ["fine", "fine"]

    def unclean(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("unclean.leader.election.enable", "true", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        next(iter(admin.incremental_alter_configs([resource]).values())).result()

    def is_reported() -> bool:
        return "unclean.leader.election.enable=true" in reported(iter(topic_outcomes(plant)), "wrong")

    # The controller says when it has written a setting down; the broker reads it from there in its own time.
    unclean(AlterConfigOpType.SET)
    try:
        wait_for(is_reported, 30, "doctor to tell what the broker is set to")
    finally:
        unclean(AlterConfigOpType.DELETE)
        wait_for(lambda: not is_reported(), 30, "the broker to take it back")


def test_window_whose_log_expires_before_certificate_is_reported(plant: Any) -> None:
    plant.batch(0, {1: 10})

    def says(oldest: str, state: str) -> str:
        plant.connection.execute(
            'UPDATE onceover."window" SET oldest_record = now() - %s::interval WHERE pipeline = %s',
            [oldest, plant.name],
        )
        return reported(checks.check_postgres([find(plant.name)]), state)

    assert "2013-01-01T01:00Z" not in says("30 days", "wrong")  # records stay for ever
    keep_log_retention(plant.connection, plant.name, 24 * 3_600_000)
    assert "window 2013-01-01T01:00Z is not certified and Kafka has dropped" in says("25 hours", "wrong")
    assert "drops records of it in 1 h 59 min" in says("22 hours", "note")
    assert "2013-01-01T01:00Z" not in says("3 hours", "note")


@pytest.mark.rare
def test_clocks_are_wrong_when_apart_and_fine_when_equal(plant: Any) -> None:
    assert [(each.state, "PostgreSQL, the NameNode" in each.what) for each in checks.check_clocks()] == [("fine", True)]
    behind = list(checks.check_clocks(lambda: time.time() + 3600))
    assert [each.state for each in behind] == ["wrong"] * len(behind)
    assert ["PostgreSQL" in behind[0].what, "the NameNode" in behind[1].what] == [True, True]
    assert re.search(r"is 3,(5\d\d|600) s behind this machine's", behind[0].what)  # less what asking takes


@pytest.mark.rare
def test_hdfs_without_room_is_reported(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TOO_LITTLE", 0.0)
    assert reported(check_hdfs([]), "wrong") == ""
    monkeypatch.setattr(machine, "TOO_LITTLE", 1.1)
    assert "free for its DataNodes; add a DataNode or a disk" in reported(check_hdfs([]), "wrong")


@pytest.mark.rare
def test_replicas_beyond_datanodes_are_wrong_if_required(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1 replica of each block; replace-datanode-on-failure is NEVER" in reported(check_hdfs([]), "fine")
    monkeypatch.setitem(embedded_hdfs.COMMON, "dfs.replication", 3)
    monkeypatch.setitem(embedded_hdfs.COMMON, "dfs.client.block.write.replace-datanode-on-failure.policy", "DEFAULT")
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path))
    own = Stack(tmp_path)
    try:
        own.up({"hdfs"})
        wrong = reported(check_hdfs([]), "wrong")
    finally:
        own.down()
    assert "3 replicas (dfs.replication), the cluster has 1 live DataNode" in wrong
    assert "replace-datanode-on-failure.policy=DEFAULT needs another in its place" in wrong


@pytest.mark.largest
@pytest.mark.rare
@pytest.mark.airflow
def test_unknown_connection_missing_master_and_pool_are_wrong(stack: Stack, airflow: AirflowRest) -> None:
    assert "connection spark_default (by AIRFLOW_CONN_SPARK_DEFAULT) is local[2]" in reported(
        checks.check_airflow(), "fine"
    )
    assert "there is no connection 'missing_one'" in reported(checks.check_airflow("missing_one"), "wrong")

    body = {"connection_id": "doctors_spark", "conn_type": "spark"}
    airflow._call("POST", "/api/v2/connections", body)
    assert "means --master 'spark://', which is not a master" in reported(
        checks.check_airflow("doctors_spark"), "wrong"
    )

    airflow._send("DELETE", "/api/v2/pools/onceover_spark")
    try:
        assert "there is no pool 'onceover_spark'" in reported(checks.check_airflow(), "wrong")
    finally:
        airflow.ensure_pool("onceover_spark", 1, "one Spark application at a time")
    assert reported(checks.check_airflow(), "wrong") == ""


@pytest.mark.largest
@pytest.mark.rare
@pytest.mark.airflow
def test_connection_without_a_known_password_is_a_note(
    stack: Stack, airflow: AirflowRest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEOVER_AIRFLOW", endpoints.address("airflow"))
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path))
    assert "`airflow connections get spark_default`" in reported(checks.check_airflow(), "note")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://master:7077")
    assert "is spark://master:7077" in reported(checks.check_airflow(), "fine")
