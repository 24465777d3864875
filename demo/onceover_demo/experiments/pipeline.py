"""A pipeline over an experiment's topic: ingested by real processes that are killed, its raw counted line by line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from onceover.config.endpoints import address
from onceover.context import open_ledger, open_pipeline
from onceover.detection import detect as detecting
from onceover.errors import TransientError
from onceover.fault_points import Step
from onceover.kafka import Topic
from onceover.model.window import WindowRange, from_ms
from onceover.raw.hdfs import SmallFiles
from onceover.repair import confirmation
from onceover_demo.experiments.topic import KAFKA_PARTITIONS, NOON_MS, RecordsOutcome, count_outcome, create
from onceover_demo.supervised import Launch, SupervisedJob, launch_job

PATIENCE_SECONDS = 600.0
_LINE = re.compile(rb'"n": (\d+)')
_TOML = """
[contract]
topic = "{name}"
window_minutes = 5
format = "json"
schema = "at BIGINT, n BIGINT"
required = ["at", "n"]
event_time = "timestamp_millis(value.at)"
[contract.measures]
records = {{ count = "*" }}
total = {{ sum = "value.n" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
offset_store = "{store}"
{path}
interval = "{interval_ms}ms"
idle_after = "1s"
max_records_per_batch = {most}
sink = "{sink}"
[repair]
eager = {eager}
"""


@dataclass(slots=True)
class Trial:
    """One pipeline. `most` is how many records a batch may read, `interval` the seconds between two batches."""

    pipelines: Path
    log: Path
    store: str
    interval: float = 1.0
    most: int = 200_000
    launch: Launch = launch_job
    sink: str = "append"
    eager: bool = False
    name: str = field(init=False)
    produced: int = field(init=False, default=0)
    job: SupervisedJob = field(init=False)

    def __post_init__(self) -> None:
        self.name = create(f"x_{self.store}")
        path = f'offset_path = "/checkpoints/{self.name}"' if self.store == "checkpoint" else ""
        text = _TOML.format(name=self.name, store=self.store, path=path, interval_ms=int(self.interval * 1000),
                            most=self.most, sink=self.sink, eager=str(self.eager).lower())  # fmt: skip
        (self.pipelines / f"{self.name}.toml").write_text(text)
        self.job = SupervisedJob("ingest.py", ["--pipeline", self.name], self.log / f"{self.name}.log", self.launch)

    def kill_after(self, step: Step, count: int = 1) -> None:
        """Run ingest, and kill its process group when it has reached that step `count` times."""
        self.job.start(stop_after=step, count=count)
        self.job.wait_until_held(PATIENCE_SECONDS)
        self.job.kill()

    def drain(self) -> None:
        """Run ingest until it has read everything and closed every window, then stop it with SIGTERM."""
        self.run_until(self.is_drained)

    def stop_after_batches(self, batches: int) -> None:
        """Run ingest for so many batches, then stop it with SIGTERM."""
        already = self._landed_batches()
        self.run_until(lambda: self._landed_batches() >= already + batches)

    def count_raw(self) -> RecordsOutcome:
        """Count the numbers in the window files, read as bytes, without any ID or the ledger."""
        return count_outcome(self._numbers(), self.produced)

    def count_aggregates(self) -> tuple[int, int]:
        """Return the number of records and their sum, as a reader sees them."""
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                f"SELECT coalesce(sum(records), 0)::bigint AS n, coalesce(sum(total), 0)::bigint AS t "
                f"FROM aggregates.{self.name}"  # a name of our own making
            ).fetchone()
        return (row["n"], row["t"]) if row else (0, 0)

    def read_windows(self) -> dict[int, tuple[int, int]]:
        """Return records and their sum by window, its start in ms, as a reader sees them."""
        with open_ledger("experiments") as ledger:
            rows = ledger.execute(
                f"SELECT window_start, records, total FROM aggregates.{self.name}"  # a name of our own making
            ).fetchall()
        return {int(r["window_start"].timestamp() * 1000): (r["records"], int(r["total"])) for r in rows}

    def repair(self) -> detecting.Detection:
        """Detect, rebuild the failed windows and confirm. Returns the detection."""
        start = from_ms(NOON_MS)
        window_range = WindowRange(start, start + timedelta(minutes=10))
        with open_pipeline(self.name, "experiments") as context:
            detection = detecting.detect(context, who="experiment", why="an experiment", window_range=window_range)
            if detection.request_id is not None:
                arguments = ["--pipeline", self.name, "--request", str(detection.request_id)]
                job = SupervisedJob("repair.py", arguments, self.log / f"{self.name}.log", self.launch)
                job.start()
                if code := job.wait(PATIENCE_SECONDS):
                    raise TransientError(f"the repair of {self.name} ended with {code}: {job.read_last_line()}")
                confirmation.confirm(context, detection.request_id)
        return detection

    def read_lag(self) -> int:
        """Count the offsets that no batch has landed yet."""
        with open_pipeline(self.name, "experiments") as context:
            isolation = context.pipeline.ingest.isolation
            with closing(Topic(context.address("kafka"), self.name, isolation, {})) as topic:
                end = sum(topic.facts().end.values())
            row = context.ledger.execute(
                "SELECT coalesce(sum(frontier), 0)::bigint AS n, count(*) AS k FROM onceover.kafka_partition "
                "WHERE pipeline = %s",
                [self.name],
            ).fetchone()
        return end - row["n"] if row and row["k"] == KAFKA_PARTITIONS else end

    def _numbers(self) -> Iterable[int]:
        files = SmallFiles(address("webhdfs"))
        folder = f"/onceover/raw/{self.name}/2026-03-01"
        for name in files.names(folder):
            for line in (files.read(f"{folder}/{name}") or b"").split(b"\n"):
                if match := _LINE.search(line):
                    yield int(match[1])

    def _landed_batches(self) -> int:
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                "SELECT count(*) AS n FROM onceover.batch WHERE pipeline = %s AND state = 'landed'", [self.name]
            ).fetchone()
        return int(row["n"]) if row else 0

    def is_drained(self) -> bool:
        """Return whether all is read, and every window closed."""
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                "SELECT every_window_closed AS closed FROM onceover.pipeline WHERE name = %s", [self.name]
            ).fetchone()
        return bool(row and row["closed"]) and self.read_lag() == 0

    def run_until(self, done: Callable[[], bool]) -> None:
        """Run ingest until that is so, then stop it with SIGTERM."""
        self.job.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise TransientError(f"{self.name} was not done in time; its log ends: {self.job.read_last_line()}")
            time.sleep(0.1)
        if code := self.job.stop(PATIENCE_SECONDS):
            raise TransientError(f"{self.name} ended with {code}: {self.job.read_last_line()}")
