"""One pipeline of a test's own on the real stack: its topic, its TOML, and the jobs' own parts driven turn by turn."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hdfs import InsecureClient
from pyspark.sql import SparkSession
from tests.integration.program import run

from onceover.audit import store as audit_store
from onceover.audit.log_job import audit_log
from onceover.audit.verify_job import verify_window
from onceover.compaction.job import CompactRun, Ended
from onceover.config.endpoints import address, pipelines_folder
from onceover.config.pipelines import find
from onceover.context import PipelineContext, open_ledger, open_pipeline
from onceover.detection.service import Detection, PlannedRepair, detect, plan_repair
from onceover.detection.sweep import Swept, sweep_pipeline
from onceover.fault_points import FaultPoint
from onceover.ingest.cutover import Migration, migrate_contract
from onceover.ingest.driver import Ingest, Progress
from onceover.ingest.job import build_driver, open_source
from onceover.ledger import compactions, drivers, repair_requests
from onceover.ledger.catalog import RegisteredPipeline, keep_log_retention, read_registered, register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.migrate import upgrade_schema
from onceover.model import line
from onceover.model.pipeline import Pipeline
from onceover.model.window import WindowRange, format_moment, from_ms
from onceover.offset_stores.admin import set_offsets
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles
from onceover.repair.job import RepairRun
from onceover.repair.refill import refill
from onceover.repair.service import Confirmation, confirm
from onceover.spark.contract_check import check_contract
from onceover.spark.contract_diff import check_change
from onceover.spark.session import build
from onceover_demo.warm import QUICKLY
from onceover_local.stack import Stack

EVENTS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "json"
schema = "at BIGINT, kind STRING, amount INT"
required = ["at", "kind"]
event_time = "value.at"
[contract.keys]
kind = "value.kind"
[contract.measures]
events = {{ count = "*" }}
amount_sum = {{ sum = "value.amount" }}
amount_max = {{ max = "value.amount" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
allowed_lateness = "10m"
idle_after = "{idle_after}"
interval = "200ms"
max_records_per_batch = {most}
first_start = "{first_start}"
offset_store = "{offset_store}"
{more}
"""
NOON_MS = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)


def event(minute: float, kind: str = "a", amount: int = 1) -> bytes:
    """A record of that many minutes after noon."""
    return json.dumps({"at": NOON_MS + int(minute * 60_000), "kind": kind, "amount": amount}).encode()


@dataclass(slots=True)
class Lane:
    """One pipeline, end to end."""

    name: str
    topic: str
    spark: SparkSession
    toml: Path

    @property
    def pipeline(self) -> Pipeline:
        return find(self.name)

    @property
    def layout(self) -> Layout:
        return Layout(self.pipeline.storage.raw_root, self.name)

    def produce(self, values: Iterable[bytes | None], kafka_partition: int = 0, **record: Any) -> None:
        producer = Producer({"bootstrap.servers": address("kafka"), "message.max.bytes": 8 << 20})
        for value in values:
            producer.produce(self.topic, value, partition=kafka_partition, **record)
        assert producer.flush(30) == 0

    @contextmanager
    def opened(self) -> Iterator[PipelineContext]:
        """The pipeline by its TOML as that is now."""
        with open_pipeline(self.name, "test") as context:
            yield context

    @contextmanager
    def ledger(self) -> Iterator[Connection]:
        with open_ledger("test") as connection:
            yield connection

    @contextmanager
    def driver(self, fault_point: FaultPoint | None = None) -> Iterator[Ingest]:
        """The real driver of `jobs/ingest.py`, in this process."""
        with self.opened() as context, open_source(context) as (topic, offsets):
            pipeline, ledger = context.pipeline, context.ledger
            known = register_pipeline(ledger, pipeline, check_contract(self.spark, pipeline.contract))
            keep_log_retention(ledger, self.name, topic.policy().retention_ms)
            epoch = drivers.acquire(ledger, self.name, "test")
            try:
                yield build_driver(self.spark, context, epoch, known, topic, offsets, fault_point or FaultPoint())
            finally:
                drivers.end_epoch(ledger, epoch)

    def ingest(self, turns: int = 50) -> list[Progress]:
        """Turns until everything is read and every window is closed."""
        done: list[Progress] = []
        with self.driver() as driver:
            for _ in range(turns):
                done.append(driver.turn())
                if done[-1].every_window_closed:
                    return done
        raise AssertionError(f"windows are still open after {turns} turns: {done[-1]}")

    def detect(self, window_range: WindowRange | None = None, *, force: bool = False) -> Detection:
        with self.opened() as context:
            return detect(context, who="test", why="a test", window_range=window_range, force=force)

    def repair(self, request_id: int) -> Confirmation:
        """Do as `jobs/repair.py` does, on this process's session, and then as the DAG's confirm does."""
        with self.opened() as context:
            known, ledger = context.read_registration(), context.ledger
            refill(self.spark, context, known, request_id, patience=5.0)
            wanted = repair_requests.read_request(ledger, self.name, request_id)
            claimed, accounted = repair_requests.claim(ledger, wanted)
            RepairRun(self.spark, context, known, wanted, FaultPoint()).run(claimed, accounted)
            repair_requests.drop_claims(ledger, self.name, claimed)
            return confirm(context, request_id)

    def compact(self) -> list[Ended]:
        """Do as `jobs/compact.py` does, on this process's session."""
        with self.opened() as context:
            due = compactions.list_compactable(context.ledger, self.name, 0, None, None)
            return CompactRun(self.spark, context, context.read_registration(), "test", "a test", FaultPoint()).run(due)

    def sweep(self) -> Swept:
        """Do as `onceover sweep` does."""
        with self.opened() as context:
            return sweep_pipeline(context)

    def planned(self, window_range: WindowRange) -> tuple[PlannedRepair, ...]:
        """The plan of a dry run of `onceover repair`."""
        with self.opened() as context:
            return plan_repair(context, window_range=window_range)

    def set_offsets(self, wanted: Mapping[int, int]) -> None:
        """Do as `onceover offsets set` does."""
        with self.opened() as context:
            set_offsets(context, wanted, "me", "a test")

    def migrate(self, *, write: bool = True) -> Migration:
        """Do as `onceover pipelines migrate` does, on this process's session."""
        with self.opened() as context:
            return migrate_contract(
                context, partial(check_change, self.spark, file="toml"), "me", "a test", write=write
            )

    def verified(self, window_start: datetime) -> Mapping[str, Any]:
        """The result of `jobs/audit.py` for the window's certificate."""
        with self.opened() as context:
            audit_id = audit_store.record_request(context.ledger, self.name, "window", window_start, None, "test")
            audit, _ = audit_store.read_audit(context.ledger, self.name, audit_id)
            return verify_window(self.spark, context, context.read_registration(), audit)

    def audited(self, window_range: WindowRange | None = None) -> Mapping[str, Any]:
        """The result of `jobs/audit.py` for Kafka's log, raw and the aggregates."""
        start, end = (window_range.start, window_range.end) if window_range else (None, None)
        with self.opened() as context:
            audit_id = audit_store.record_request(context.ledger, self.name, "log", start, end, "test")
            audit, _ = audit_store.read_audit(context.ledger, self.name, audit_id)
            return audit_log(self.spark, context, context.read_registration(), audit)

    def explained(self, minute: float) -> Mapping[str, Any]:
        """The answer of `onceover explain --json` for the window that starts that many minutes after noon."""
        found: Mapping[str, Any] = json.loads(self.text(minute, "--json"))
        return found

    def text(self, minute: float, *options: str) -> str:
        """The output of `onceover explain` for that window, a line a sentence."""
        window = format_moment(from_ms(NOON_MS + int(minute * 60_000)))
        done = run("explain", self.name, window, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def known(self) -> RegisteredPipeline:
        with self.ledger() as ledger:
            return read_registered(ledger, self.name)

    def files(self) -> WindowFiles:
        return WindowFiles(address("webhdfs"), self.layout)

    def hdfs(self) -> InsecureClient:
        return InsecureClient(address("webhdfs"), user="root")

    def aggregates(self) -> dict[tuple[object, ...], tuple[object, ...]]:
        """(minutes after noon, keys...) to measures, as a reader sees them."""
        known = self.known()
        keys, measures = [c.name for c in known.columns.keys], [c.name for c in known.columns.measures]
        with self.ledger() as ledger:
            rows = ledger.execute(f"SELECT * FROM aggregates.{self.name}").fetchall()  # a name of the test's own making
        return {
            (_minute(row["window_start"]), *(row[k] for k in keys)): tuple(row[m] for m in measures) for row in rows
        }

    def raw(self) -> dict[str, bytes]:
        """Every file below the pipeline's root."""
        client, root = self.hdfs(), f"{self.layout.raw_root}/{self.name}"
        found: dict[str, bytes] = {}
        for folder, _, names in client.walk(root):
            for name in names:
                with client.read(f"{folder}/{name}") as reader:
                    found[f"{folder}/{name}".removeprefix(root + "/")] = reader.read()
        return found

    def lines(self) -> list[tuple[str, line.Line]]:
        """Every intact line with its file, torn ones left out."""
        found = []
        for name, content in self.raw().items():
            for text in content.split(b"\n"):
                if text:
                    try:
                        found.append((name, line.decode(text)))
                    except line.CorruptLineError:
                        continue
        return found

    def log(self) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
        """The topic by another client: (Kafka partition, offset) to key and value."""
        consumer = Consumer({"bootstrap.servers": address("kafka"), "group.id": f"oracle-{uuid.uuid4().hex}",
                             "enable.partition.eof": True, "enable.auto.commit": False})  # fmt: skip
        partitions = consumer.list_topics(self.topic).topics[self.topic].partitions
        consumer.assign([TopicPartition(self.topic, p, 0) for p in partitions])
        found: dict[tuple[int, int], tuple[bytes | None, bytes | None]] = {}
        at_end = 0
        while at_end < len(partitions):
            message = consumer.poll(10)
            assert message is not None, "the broker has gone quiet"
            if message.error():
                at_end += 1
            else:
                at = (message.partition() or 0, message.offset() or 0)
                found[at] = (message.key(), message.value())
        consumer.close()
        return found


def _minute(moment: object) -> float:
    assert isinstance(moment, datetime)
    return (moment.timestamp() * 1000 - NOON_MS) / 60_000


@pytest.fixture(scope="session")
def spark_session(stack: Stack) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(
            "PYSPARK_SUBMIT_ARGS",
            "--master local[2] --conf spark.driver.memory=1g "
            # Ten records are faster interpreted than compiled, and planned once than stage by stage; what is compiled,
            # and planned adaptively, is run by the jobs' own processes in tests/faults and by Airflow's.
            "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
            f"--conf spark.sql.shuffle.partitions=2 --conf spark.sql.adaptive.enabled=false {QUICKLY} "
            "--conf spark.hadoop.dfs.client.retry.window.base=10 pyspark-shell",
        )
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = build("integration tests")
        yield session
        session.stop()


@pytest.fixture
def lanes(stack: Stack, spark_session: SparkSession) -> Iterator[Callable[..., Lane]]:
    """Makes lanes: `lanes(toml=EVENTS, partitions=1, minutes=5, most=100_000)`. A TOML goes with its test: a schedule
    looks at every pipeline there is, and what one test broke is no concern of the next."""
    upgrade_schema(address("postgres"))
    made: list[Path] = []

    def make(
        toml: str = EVENTS, partitions: int = 1, topic_config: Mapping[str, str] | None = None, **settings: object
    ) -> Lane:
        name = f"t{uuid.uuid4().hex[:10]}"
        config = {"retention.ms": "-1", "max.message.bytes": "4000000", **(topic_config or {})}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin = AdminClient({"bootstrap.servers": address("kafka")})  # its futures end with it, so it is kept
        admin.create_topics([topic])[name].result(30)
        defaults = {"minutes": 5, "most": 100_000, "idle_after": "1ms", "first_start": "earliest",
                    "offset_store": "kafka", "more": ""}  # fmt: skip
        toml_file = pipelines_folder() / f"{name}.toml"
        toml_file.write_text(toml.format(topic=name, **{**defaults, **settings}))
        made.append(toml_file)
        return Lane(name, name, spark_session, toml_file)

    yield make
    for toml_file in made:
        toml_file.unlink()
    if spark_session:  # None where the jobs bring their own
        scheduler = spark_session.sparkContext._jsc.sc().dagScheduler()
        assert scheduler.activeQueryToJobs().isEmpty(), "Spark keeps jobs of queries that ended: memory fills up"
