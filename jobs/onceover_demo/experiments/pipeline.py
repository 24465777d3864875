"""A pipeline of ours over such a topic: ingested by real processes that are killed, its raw counted line by line."""

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
from onceover.detection import service as detection_service
from onceover.errors import TransientError
from onceover.fault_points import Step
from onceover.kafka import Topic
from onceover.model.window import WindowRange, from_ms
from onceover.raw.hdfs import SmallFiles
from onceover.repair import service as repair_service
from onceover_demo.experiments.topic import KAFKA_PARTITIONS, NOON_MS, Seen, create, seen
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
"""


@dataclass(slots=True)
class Trial:
    """One pipeline. `most` is what a batch may read, `interval` seconds lie between two."""

    pipelines: Path
    log: Path
    store: str
    interval: float = 1.0
    most: int = 200_000
    launch: Launch = launch_job
    name: str = field(init=False)
    produced: int = field(init=False, default=0)
    job: SupervisedJob = field(init=False)

    def __post_init__(self) -> None:
        self.name = create(f"x_{self.store}")
        path = f'offset_path = "/checkpoints/{self.name}"' if self.store == "checkpoint" else ""
        text = _TOML.format(name=self.name, store=self.store, path=path, interval_ms=int(self.interval * 1000),
                            most=self.most)  # fmt: skip
        (self.pipelines / f"{self.name}.toml").write_text(text)
        self.job = SupervisedJob("ingest.py", ["--pipeline", self.name], self.log / f"{self.name}.log", self.launch)

    def kill_after(self, step: Step, count: int = 1) -> None:
        """One run of ingest that is killed whole when it has reached that step so often."""
        self.job.start(stop_after=step, count=count)
        self.job.wait_until_held(PATIENCE_SECONDS)
        self.job.kill()

    def drain(self) -> None:
        """One run of ingest that reads all there is, closes every window, and is stopped politely."""
        self._run_until(self._is_drained)

    def stop_after_batches(self, batches: int) -> None:
        """One run of ingest that is stopped politely after so many batches."""
        already = self._landed_batches()
        self._run_until(lambda: self._landed_batches() >= already + batches)

    def in_raw(self) -> Seen:
        """What the window files hold, read as bytes: no ID and no ledger is asked."""
        return seen(self._numbers(), self.produced)

    def in_aggregates(self) -> tuple[int, int]:
        """Records and their sum, as a reader sees them."""
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                f"SELECT coalesce(sum(records), 0)::bigint AS n, coalesce(sum(total), 0)::bigint AS t "
                f"FROM aggregates.{self.name}"  # a name of our own making
            ).fetchone()
        return (row["n"], row["t"]) if row else (0, 0)

    def repair(self) -> detection_service.Detection:
        """Detect, rebuild what is wrong, confirm; what was found."""
        start = from_ms(NOON_MS)
        window_range = WindowRange(start, start + timedelta(minutes=10), 5)
        with open_pipeline(self.name, "experiments") as context:
            found = detection_service.detect(context, who="experiment", why="an experiment", window_range=window_range)
            if found.request_id is not None:
                arguments = ["--pipeline", self.name, "--request", str(found.request_id)]
                job = SupervisedJob("repair.py", arguments, self.log / f"{self.name}.log", self.launch)
                job.start()
                if code := job.wait(PATIENCE_SECONDS):
                    raise TransientError(f"the repair of {self.name} ended with {code}: {job.last_words()}")
                repair_service.confirm(context, found.request_id)
        return found

    def lag(self) -> int:
        """Offsets that no batch has landed yet."""
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
                if found := _LINE.search(line):
                    yield int(found[1])

    def _landed_batches(self) -> int:
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                "SELECT count(*) AS n FROM onceover.batch WHERE pipeline = %s AND state = 'landed'", [self.name]
            ).fetchone()
        return int(row["n"]) if row else 0

    def _is_drained(self) -> bool:
        with open_ledger("experiments") as ledger:
            row = ledger.execute(
                "SELECT every_window_closed AS closed FROM onceover.pipeline WHERE name = %s", [self.name]
            ).fetchone()
        return bool(row and row["closed"]) and self.lag() == 0

    def _run_until(self, done: Callable[[], bool]) -> None:
        self.job.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise TransientError(f"{self.name} did not get there: {self.job.last_words()}")
            time.sleep(0.1)
        if code := self.job.stop(PATIENCE_SECONDS):
            raise TransientError(f"{self.name} ended with {code}: {self.job.last_words()}")
