"""The fixtures of lanes: one Spark session for all of them, and pipelines with topics of their own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from tests.integration.events import EVENTS, fill_toml
from tests.integration.lane import Lane
from tests.own_stack import ROOT

from onceover.config.endpoints import address, pipelines_folder
from onceover.ledger.database import upgrade_schema
from onceover.spark.session import build
from onceover_demo.warm import QUICKLY
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for


@pytest.fixture(scope="session")
def spark_session(stack: Stack) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(
            "PYSPARK_SUBMIT_ARGS",
            "--master local[2] --conf spark.driver.memory=1g "
            # Ten records are faster interpreted than compiled, and planned once than adaptively; the jobs' processes
            # in tests/faults and in Airflow run compiled, adaptive queries.
            "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
            f"--conf spark.sql.shuffle.partitions=2 --conf spark.sql.adaptive.enabled=false {QUICKLY} "
            "--conf spark.hadoop.dfs.client.retry.window.base=10 pyspark-shell",
        )
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # Spark's workers take both when the JVM starts; test_main_path.py keeps raw in a folder.
        environment.setenv("ONCEOVER_RAW_STORES", "folder=tests.folder_store:FolderStore")
        environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
        session = build("integration tests")
        yield session
        session.stop()


@pytest.fixture
def lanes(stack: Stack, spark_session: SparkSession) -> Iterator[Callable[..., Lane]]:
    """Return a maker of lanes: `lanes(toml=EVENTS, partitions=1, minutes=5, most=100_000)`.

    Each TOML is deleted after its test: a schedule runs every pipeline, and would fail on what an earlier test broke.
    """
    upgrade_schema(address("postgres"))
    made: list[Path] = []

    def make(
        toml: str = EVENTS,
        partitions: int = 1,
        topic_config: Mapping[str, str] | None = None,
        brokers: Sequence[int] = (),
        **settings: object,
    ) -> Lane:
        name = f"t{uuid.uuid4().hex[:10]}"
        config = {"retention.ms": "-1", "max.message.bytes": "4000000", **(topic_config or {})}
        replicas = {"replica_assignment": [list(brokers)] * partitions} if brokers else {"replication_factor": 1}
        topic = NewTopic(name, num_partitions=partitions, config=config, **replicas)
        admin = AdminClient({"bootstrap.servers": address("kafka")})  # kept, because its futures end with it
        admin.create_topics([topic])[name].result(30)
        toml_file = pipelines_folder() / f"{name}.toml"
        toml_file.write_text(fill_toml(name, toml, **settings))
        made.append(toml_file)
        return Lane(name, name, spark_session, toml_file)

    yield make
    for toml_file in made:
        toml_file.unlink()
    if spark_session:  # None where the jobs bring their own
        scheduler = spark_session.sparkContext._jsc.sc().dagScheduler()
        # Its event loop drops them after the query's end; what it keeps for good fills memory up.
        wait_for(lambda: scheduler.activeQueryToJobs().isEmpty(), 30, "Spark to drop the jobs of queries that ended")


@pytest.fixture
def over(lanes: Callable[..., Lane], stack: Stack) -> Callable[..., Lane]:
    """Return a maker of lanes whose offsets are in that store."""

    def make(store: str, **settings: Any) -> Lane:
        if store in ("zookeeper", "hbase"):
            stack.up([store])
        lane = lanes(offset_store=store, **settings)
        if store == "checkpoint":
            text = lane.toml.read_text()
            lane.toml.write_text(text.replace("[ingest]", f'[ingest]\noffset_path = "/checkpoints/{lane.name}"'))
        return lane

    return make


def put_on(store: str, lanes: Callable[..., Lane], stack: Stack) -> Callable[..., Lane]:
    """Return a maker of lanes whose raw is in that store."""
    if store == "hbase":
        stack.up([store])

    def make(toml: str = EVENTS, **settings: Any) -> Lane:
        more = settings.pop("more", "")
        if "{more}" not in toml:
            toml += "{more}"
        return lanes(toml, more=f'{more}\n[storage]\nraw_store = "{store}"', **settings)

    return make
