"""The command line as a test calls it, and a pipeline whose windows are in every state, planted without an ingest."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from onceover.cli.app import app
from onceover.cli.output import Answer, Part, print_answer
from onceover.config import endpoints
from onceover.config.pipelines import find
from onceover.kafka import Topic
from onceover.ledger import batches, drivers, frontiers, increments
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.root import Root
from onceover.model.batch import Increment, Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.raw.layout import Layout
from onceover.raw.marker import MarkerFiles
from onceover.raw.window_files import WindowFiles
from onceover_local.stack import Stack

TOML = """
[contract]
topic = "{name}"
window_minutes = 60
format = "json"
schema = "at STRING, place STRING"
required = ["at", "place"]
event_time = "to_timestamp(value.at)"
[contract.keys]
place = "value.place"
[contract.measures]
things = {{ count = "*" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
group = "onceover-{name}"
"""
SOURCE = KafkaPartition("5f3a0b1c", 0)
DAY = datetime(2013, 1, 1, tzinfo=UTC)

Run = Callable[..., Result]


def list_commands(of: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(of, TyperGroup):
        assert of.name == path[-1]
        return [path]
    context = typer.Context(of)
    names = of.list_commands(context)
    return [each for name in names for each in list_commands(of.get_command(context, name), (*path, name))]


COMMANDS = list_commands(typer.main.get_command(app))
"""The words of each command, groups included."""


@pytest.fixture
def run() -> Run:
    """`onceover WORDS...` in this process; stdout and stderr apart, as a pipe would have them."""
    runner = CliRunner()

    def invoke(*words: str) -> Result:
        return runner.invoke(app, list(words), prog_name="onceover", catch_exceptions=False)

    return invoke


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one pipeline, `things`, and no address of any server."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "things.toml").write_text(TOML.format(name="things"))
    monkeypatch.setenv("ONCEOVER_HOME", str(tmp_path))
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path / ".local"))
    monkeypatch.delenv("ONCEOVER_PIPELINES", raising=False)
    for part in endpoints.PARTS:
        monkeypatch.delenv(f"ONCEOVER_{part.upper()}", raising=False)
    return tmp_path


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The text that a person reads of these parts of an answer, in a pipe."""

    def print_parts(*parts: Part) -> str:
        print_answer(Answer(None, parts), as_json=False)
        return capsys.readouterr().out

    return print_parts


class Planted:
    """A registered pipeline, one Kafka partition, and batches that a test lands, leaves or doubles."""

    def __init__(self, name: str, connection: Connection, known: RegisteredPipeline, files: WindowFiles) -> None:
        self.name, self.connection, self.known, self.files = name, connection, known, files
        self.epoch = drivers.acquire(connection, name, "test:1")
        origin = {SOURCE: Start(0, 0)}
        frontiers.register_kafka_partitions(connection, self.epoch, "XzoLHAAAAAAAAAAAAAAAAA", origin, {SOURCE: 1_000})
        with closing(Topic(endpoints.address("kafka"), name, "read_committed", {})) as topic:
            cluster = topic.read_cluster_id()
        markers = MarkerFiles(endpoints.locate_hdfs(), files.layout)
        Root(connection, name, files, markers).claim(self.epoch, cluster, "test")

    def batch(self, start: int, hours: Mapping[int, int], *, counts: bool = True, lands: bool = True) -> int:
        """A batch of offsets from `start` on, with so many records for each hour of the day."""
        whole = OffsetRange(SOURCE, start, start + sum(hours.values()))
        batch_id = batches.begin(self.connection, self.epoch, 1, [whole])
        landings = [self._append(hour, records) for hour, records in hours.items()]
        if counts:
            control = [Increment(hour_of(h), hour_of(h + 1), digest(n)) for h, n in hours.items()]
            increments.increment(self.connection, self.epoch, self.known.table, batch_id, control, 0)
        if lands:
            newest = hour_of(max(hours)) + timedelta(minutes=59)
            read = RangeRead(whole, digest(sum(hours.values())), newest, leader_epochs=((0, start),))
            batches.land_batch(self.connection, self.epoch, batch_id, [read], landings)
        return batch_id

    def close_before(self, hour: int) -> None:
        self.connection.execute(
            "UPDATE onceover.pipeline SET watermark = %s WHERE name = %s", [hour_of(hour), self.name]
        )

    def block(self, hour: int, why: str) -> None:
        self.connection.execute(
            'UPDATE onceover."window" SET tries = 3, blocked_at = now(), blocked_why = %s '
            "WHERE pipeline = %s AND window_start = %s",
            [why, self.name, hour_of(hour)],
        )

    def die(self) -> None:
        """The driver is gone: its heartbeat is no longer fresh."""
        drivers.end_epoch(self.connection, self.epoch)

    def append(self, hour: int, data: bytes) -> tuple[int, int]:
        done = self.files.append(self.files.layout.window_file(hour_of(hour)), [data])
        return done.start, done.end

    def _append(self, hour: int, records: int) -> Landing:
        start, end = self.append(hour, b"\n" + b"x" * 99 * records + b"\n")
        return Landing(hour_of(hour), None, start, end, True, (LandingPart(SOURCE, digest(records)),))


def hour_of(hour: int) -> datetime:
    return DAY + timedelta(hours=hour)


def digest(records: int) -> Digest:
    """Of any so many records: additive, as digests are."""
    return Digest(records, records * 3, records * 5, records * 7, records * 11)


@contextmanager
def planted(home: Path) -> Iterator[Planted]:
    """A pipeline of a name of its own, in the home and in the ledger."""
    name = f"cli_{uuid.uuid4().hex[:8]}"
    (home / "pipelines" / f"{name}.toml").write_text(TOML.format(name=name))
    pipeline = find(name, home)
    upgrade_schema(endpoints.address("postgres"))
    columns = Columns((Column("place", "text"),), (Column("things", "bigint", "count"),))
    with connect(endpoints.address("postgres"), "onceover test") as connection:
        known = register_pipeline(connection, pipeline, columns)
        files = WindowFiles(endpoints.locate_hdfs(), Layout(pipeline.storage.raw_root, name))
        yield Planted(name, connection, known, files)


@pytest.fixture
def plant(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    """`planted` on the session's stack, in a home of its own."""
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("ONCEOVER_HOME", str(tmp_path))
    monkeypatch.delenv("ONCEOVER_PIPELINES", raising=False)
    monkeypatch.setenv("ONCEOVER_LOCAL", str(stack.local))
    with planted(tmp_path) as found:
        yield found
