"""A test's own pipeline on the real stack: its topic, its TOML, and the jobs' own parts, run turn by turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from hdfs import Client
from pyspark.sql import SparkSession
from tests.integration.events import Rows, count_minutes, moment
from tests.integration.program import succeed
from tests.integration.raw_oracles import READERS, connect, read_log

from onceover.audit import store as audit_store
from onceover.audit.log_job import audit_log
from onceover.audit.verify_job import verify_window
from onceover.compaction.found import list_due
from onceover.compaction.job import CompactionResult, CompactRun, take_over_found
from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.context import PipelineContext, open_ledger, open_pipeline
from onceover.detection.detect import Detection, detect
from onceover.detection.plan import PlannedRepair, plan_repair
from onceover.detection.sweep import SweepResult, sweep_pipeline
from onceover.fault_points import FaultPoint
from onceover.ingest.cutover import Migration, migrate_contract
from onceover.ingest.driver import Ingest
from onceover.ingest.job import build_driver, open_source
from onceover.ingest.report import Progress
from onceover.ledger import drivers, repair_requests
from onceover.ledger.catalog import RegisteredPipeline, read_registered, register_pipeline
from onceover.ledger.database import Connection, upgrade_schema
from onceover.ledger.frontiers import list_generations
from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_format import Line, decode
from onceover.model.offsets import KafkaPartition
from onceover.model.pipeline import Pipeline
from onceover.model.window import WindowRange, format_moment
from onceover.model.windowing import Windowing
from onceover.offset_stores.admin import set_offsets
from onceover.raw.layout import Layout
from onceover.raw.store import RawStore, open_store
from onceover.raw.window_files import WindowFiles
from onceover.recovery.job import RebuildResult, rebuild_pipeline
from onceover.repair.confirmation import Confirmation, confirm
from onceover.repair.groups import repair_groups
from onceover.repair.read_again import RereadPlan, plan_reread, request_reread, run_read_again
from onceover.spark.contract_check import check_contract
from onceover.spark.contract_diff import check_change

_LISTS = ("marker/", "contracts/", "schemas/", "expired/windows.log")


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

    def window_file(self, minute: float) -> str:
        """Return the path of the file of the window that starts that many minutes after noon."""
        return self.layout.window_file(moment(minute))

    def produce(self, values: Iterable[bytes | None], kafka_partition: int = 0, **record: Any) -> None:
        producer = Producer({"bootstrap.servers": address("kafka"), "message.max.bytes": 8 << 20})
        for value in values:
            producer.produce(self.topic, value, partition=kafka_partition, **record)
        assert producer.flush(30) == 0

    @contextmanager
    def open(self) -> Iterator[PipelineContext]:
        """Open the pipeline by its current TOML."""
        with open_pipeline(self.name, "test") as context:
            yield context

    @contextmanager
    def ledger(self) -> Iterator[Connection]:
        with open_ledger("test") as connection:
            yield connection

    def query(self, statement: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[dict[str, Any]]:
        """Execute a statement on the ledger; return the rows that it reads or returns."""
        with self.ledger() as ledger:
            cursor = ledger.execute(statement, values)
            return cursor.fetchall() if cursor.description is not None else []  # of no columns, too

    @contextmanager
    def driver(self, fault_point: FaultPoint | None = None) -> Iterator[Ingest]:
        """Open the real driver of `jobs/ingest.py`, in this process."""
        with self.open() as context, open_source(context) as (topic, offsets):
            pipeline, ledger = context.pipeline, context.ledger
            context.require_own_root(topic.read_cluster_id())
            entry = register_pipeline(ledger, pipeline, check_contract(self.spark, pipeline.contract))
            epoch = drivers.acquire(ledger, self.name, "test")
            try:
                yield build_driver(self.spark, context, epoch, entry, topic, offsets, fault_point or FaultPoint())
            finally:
                drivers.end_epoch(ledger, epoch)

    def turn(self, times: int = 1) -> None:
        """Run so many turns of a driver."""
        with self.driver() as driver:
            for _ in range(times):
                driver.turn()

    def land(self, values: Iterable[bytes | None], kafka_partition: int = 0, **record: Any) -> list[Progress]:
        """Produce these values, and ingest them."""
        self.produce(values, kafka_partition, **record)
        return self.ingest()

    def ingest(self, turns: int = 50) -> list[Progress]:
        """Run turns until all is read and every window is closed; return their progress."""
        done: list[Progress] = []
        with self.driver() as driver:
            for _ in range(turns):
                done.append(driver.turn())
                if done[-1].every_window_closed:
                    return done
        raise AssertionError(f"windows are still open after {turns} turns: {done[-1]}")

    def detect(self, window_range: WindowRange | None = None, **how: Any) -> Detection:
        with self.open() as context:
            return detect(context, who="test", why="a test", window_range=window_range, **how)

    def repair(self, request_id: int | None) -> Confirmation:
        """Do as `jobs/repair.py` does, on this process's session, and then as the DAG's confirm does."""
        assert request_id is not None, "nothing is to be repaired"
        with self.open() as context:
            pipeline, ledger = context.read_registration(), context.ledger
            run_read_again(self.spark, context, pipeline, request_id, patience=5.0)
            request = repair_requests.read_request(ledger, self.name, request_id)
            repair_groups(self.spark, context, pipeline, request, FaultPoint())
            return confirm(context, request_id)

    def repair_detected(self, window_range: WindowRange | None = None, **how: Any) -> Confirmation:
        """Repair what detection requests."""
        return self.repair(self.detect(window_range, **how).request_id)

    def reread(self, minute: float) -> tuple[RereadPlan, Confirmation | None]:
        """Do as `onceover reread` does, on this process's session."""
        with self.open() as context:
            pipeline, window = context.read_registration(), Windowing(5).window_at(moment(minute))
            plan = plan_reread(self.spark, context, pipeline, window)
            request_id, plan = request_reread(self.spark, context, pipeline, plan, "test", "a test")
        return plan, None if request_id is None else self.repair(request_id)

    def compact(self) -> list[CompactionResult]:
        """Do as `jobs/compact.py` does, on this process's session."""
        with self.open() as context:
            found, due = list_due(context, 0, None, None)
            done = take_over_found(self.spark, context, found)
            compaction = CompactRun(self.spark, context, context.read_registration(), FaultPoint())
            return done + compaction.run(due)

    def rebuild(self) -> RebuildResult:
        """Do as `jobs/rebuild_ledger.py` does, on this process's session; the ledger's schema is made if it is lost."""
        upgrade_schema(address("postgres"))
        with self.open() as context:
            return rebuild_pipeline(self.spark, context)

    def sweep(self) -> SweepResult:
        """Do as `onceover sweep` does."""
        with self.open() as context:
            return sweep_pipeline(context)

    def plan(self, window_range: WindowRange) -> tuple[PlannedRepair, ...]:
        """Return the plan of a dry run of `onceover repair`."""
        with self.open() as context:
            return plan_repair(context, window_range=window_range).windows

    def set_offsets(self, offsets: Mapping[int, int]) -> None:
        """Do as `onceover offsets set` does."""
        with self.open() as context:
            set_offsets(context, offsets, "me", "a test")

    def migrate(self, *, write: bool = True) -> Migration:
        """Do as `onceover pipelines migrate` does, on this process's session."""
        with self.open() as context:
            return migrate_contract(
                context, partial(check_change, self.spark, file="toml"), "me", "a test", write=write
            )

    def verify(self, minute: float) -> Mapping[str, Any]:
        """Return the result of `jobs/audit.py` for the certificate of the window at that minute."""
        with self.open() as context:
            audit_id = audit_store.record_request(context.ledger, self.name, "window", moment(minute), None, "test")
            audit, _ = audit_store.read_audit(context.ledger, self.name, audit_id)
            return verify_window(self.spark, context, context.read_registration(), audit)

    def audit(self, window_range: WindowRange | None = None) -> Mapping[str, Any]:
        """Return the result of `jobs/audit.py` for Kafka's log, raw and the aggregates."""
        start, end = (window_range.start, window_range.end) if window_range else (None, None)
        with self.open() as context:
            audit_id = audit_store.record_request(context.ledger, self.name, "log", start, end, "test")
            audit, _ = audit_store.read_audit(context.ledger, self.name, audit_id)
            return audit_log(self.spark, context, context.read_registration(), audit)

    def explain(self, minute: float) -> Mapping[str, Any]:
        """Return the output of `onceover explain --json` for the window that starts that many minutes after noon."""
        output: Mapping[str, Any] = json.loads(self.explain_text(minute, "--json"))
        return output

    def explain_text(self, minute: float, *options: str) -> str:
        """Return the output of `onceover explain` for that window, a line a sentence."""
        window = format_moment(moment(minute))
        return succeed("explain", self.name, window, *options)

    def registered(self) -> RegisteredPipeline:
        with self.ledger() as ledger:
            return read_registered(ledger, self.name)

    def source(self) -> KafkaPartition:
        """Return the first Kafka partition, of the newest topic."""
        with self.ledger() as ledger:
            return KafkaPartition(list_generations(ledger, self.name)[-1], 0)

    def files(self) -> WindowFiles:
        with self.open() as context:
            return context.files

    def store(self) -> RawStore:
        """Return the raw store, for a test that damages raw."""
        with self.open() as context:
            return open_store(context.raw_address)

    def read(self, path: str) -> bytes:
        """Return a file of raw."""
        content = self.store().read(path)
        assert content is not None
        return content

    def overwrite(self, path: str, content: bytes) -> None:
        """Put other bytes in a file's place, behind the ledger's back."""
        store = self.store()
        store.remove(path)
        store.append(path, [content])

    def hdfs(self) -> Client:
        return connect()

    def aggregates(self) -> Rows:
        """Return measures by (minutes after noon, keys...), as a reader sees them."""
        columns = self.registered().columns
        keys, measures = [c.name for c in columns.keys], [c.name for c in columns.values]
        with self.ledger() as ledger:
            rows = ledger.execute(f"SELECT * FROM aggregates.{self.name}").fetchall()  # a name of the test's own making
        return {
            (count_minutes(row["window_start"]), *(row[k] for k in keys)): tuple(row[m] for m in measures)
            for row in rows
        }

    def raw(self) -> dict[str, bytes]:
        """Return the content of every file below the pipeline's root; without markers, contracts and the list of
        expired windows."""
        files = READERS[self.pipeline.storage.raw_store](f"{self.layout.raw_root}/{self.name}")
        return {name: content for name, content in files.items() if not name.startswith(_LISTS)}

    def lines(self) -> list[tuple[str, Line]]:
        """Return every intact line with its file; leaves out torn lines."""
        lines = []
        for name, content in self.raw().items():
            for text in filter(None, content.split(b"\n")):
                with suppress(CorruptLineError):
                    lines.append((name, decode(text)))
        return lines

    def reasons(self) -> dict[tuple[int, int], str]:
        """Return the reason of each record in quarantine, by Kafka partition and offset."""
        held = ((line.record, line.reason) for _, line in self.lines() if line.reason is not None)
        return {(record.source.kafka_partition, record.offset): reason for record, reason in held}

    def ids(self) -> list[tuple[int, int]]:
        """Return Kafka partition and offset of each intact line, in any order."""
        return [(line.record.source.kafka_partition, line.record.offset) for _, line in self.lines()]

    def log(self) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
        """Read the topic by another client: key and value by (Kafka partition, offset)."""
        return read_log(self.topic)


Lanes = Callable[..., Lane]
"""A maker of lanes: see the fixture `lanes`."""
