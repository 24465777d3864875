"""Whose a raw root is, on real servers: other ledgers, copies, restored ledgers and mirrors are refused until a person
says otherwise; ordinary starts are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import copy_ledger, make_ledger
from tests.integration.planted_failures import add_partitions, lose_ledger, minutes
from tests.integration.planted_failures import expire as expire_log
from tests.integration.program import run
from tests.integration.releases import look

from onceover.config.endpoints import address
from onceover.context import PipelineContext
from onceover.detection import holes
from onceover.detection.cuts import compare_log
from onceover.detection.detect import detect
from onceover.errors import OnceoverError
from onceover.kafka import Topic
from onceover.ledger import frontiers
from onceover.ledger.root import RootRefusedError
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.root_marker import RootMarker
from onceover.model.root_ownership import RootProblem
from onceover.retention.expire import ExpiryDue, expire

pytestmark = pytest.mark.stack


def read_marker(lane: Lane) -> RootMarker:
    with lane.open() as context:
        marker = context.markers.read_newest().marker
    assert marker is not None
    return marker


def name_other_cluster(lane: Lane) -> None:
    with lane.open() as context:
        stored = context.markers.read_newest()
        context.markers.write_next(stored, replace(read_marker(lane), kafka_cluster="aMirror"))


def find_problem(lane: Lane) -> RootProblem | None:
    """Return why an ingest is refused, None if it is not."""
    try:
        with lane.driver():
            return None
    except RootRefusedError as refused:
        return refused.problem


def take_root(lane: Lane, *options: str) -> tuple[int, str]:
    done = run("ledger", "take-root", lane.name, "--reason", "a test", *options)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    """A pipeline with 10 records landed in two windows."""
    made = lanes()
    made.land([event(n) for n in range(10)])
    return made


def test_empty_ledger_is_refused_wherever_it_would_write(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, first = lane.raw(), read_marker(lane)
    with lane.open() as context, closing(Topic(address("kafka"), lane.topic, "read_committed", {})) as topic:
        generation = topic.facts().generation
        known = context.ledger.execute("SELECT ledger_id FROM onceover.ledger").fetchone()
    assert known
    assert (first.ledger.ledger_id, first.origins) == (known["ledger_id"], {KafkaPartition(generation, 0): 0})
    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    assert find_problem(lane) is RootProblem.OTHER_LEDGER
    for refused in (lane.detect, lane.sweep):
        with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"):
            refused()
    with lane.open() as context, pytest.raises(RootRefusedError):
        detect(context, who="a schedule", why="its turn")
    code, said = take_root(lane)
    assert (code, f"`onceover ledger rebuild {lane.name}`" in said) == (2, True)
    assert (lane.raw(), read_marker(lane)) == (raw, first), "a refused ledger writes nothing"


@pytest.mark.largest
def test_copied_ledger_is_refused_until_it_takes_the_root(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    original, copy = address("postgres"), copy_ledger()
    lane.produce([event(3, kind="late")])
    monkeypatch.setenv("ONCEOVER_POSTGRES", copy)
    assert find_problem(lane) is RootProblem.COPIED_LEDGER
    code, said = take_root(lane)
    assert code == 0, said
    lane.ingest()
    rows = lane.query(
        "SELECT why, detail FROM onceover.action WHERE pipeline = %s AND kind = 'take over raw'", [lane.name]
    )
    assert [row["why"] for row in rows] == ["a test"]
    detail = rows[0]["detail"]
    assert detail["before"]["database"] != detail["after"]["database"] == read_marker(lane).ledger.database
    monkeypatch.setenv("ONCEOVER_POSTGRES", original)
    assert find_problem(lane) is RootProblem.COPIED_LEDGER, "now the original is the one that must not write"


@contextmanager
def cloned(lane: Lane) -> Iterator[None]:
    """Clone the ledger, as a copied file system does, and leave the clone as the ledger after the block."""
    (before,) = lane.query("SELECT max(epoch) AS epoch FROM onceover.driver WHERE pipeline = %s", [lane.name])
    yield
    lane.query("DELETE FROM onceover.driver WHERE pipeline = %s AND epoch > %s", [lane.name, before["epoch"]])
    lane.query(
        "UPDATE onceover.driver SET superseded_at = NULL WHERE pipeline = %s AND epoch = %s",
        [lane.name, before["epoch"]],
    )


@pytest.mark.largest
def test_ledger_restored_behind_the_last_driver_is_refused(lane: Lane) -> None:
    with cloned(lane):
        lane.land([event(20)])
    assert find_problem(lane) is RootProblem.RESTORED_LEDGER
    assert take_root(lane)[0] == 0
    assert find_problem(lane) is None
    with cloned(lane), lane.open() as context:
        expire(context, ExpiryDue(lane.name, 0, (), 0), "me", "a test")
    assert find_problem(lane) is RootProblem.RESTORED_LEDGER, "retention of the original moves files for it alone"


@pytest.mark.largest
def test_lost_marker_is_refused_until_a_person_takes_the_root(lane: Lane) -> None:
    with lane.open() as context:
        lane.hdfs().delete(context.markers.folder, recursive=True)
    assert find_problem(lane) is RootProblem.UNMARKED
    assert take_root(lane)[0] == 0
    assert find_problem(lane) is None
    assert list(read_marker(lane).origins.values()) == [0], "the ledger's origins are in the new marker"
    lane.hdfs().delete(f"{lane.layout.raw_root}/{lane.name}", recursive=True)  # as another server's address shows it
    assert find_problem(lane) is RootProblem.LOST_RAW
    assert take_root(lane)[0] == 0
    assert find_problem(lane) is None


@pytest.mark.largest
def test_root_of_a_future_format_is_refused_and_keeps_its_marker(lane: Lane) -> None:
    with lane.open() as context:
        folder, newest = context.layout.marker_folder, context.markers.read_newest()
    name = f"{folder}/{newest.number + 1}.json"
    future = read_marker(lane).to_bytes().replace(b'"format": 3', b'"format": 4')
    lane.hdfs().write(name, data=future)
    for act in (lane.ingest, lane.detect, lane.sweep, lane.rebuild):
        with pytest.raises(OnceoverError, match="landed batches" if act == lane.rebuild else f"{name}.*of format 4"):
            act()
    for read in (lane.audit, lambda: lane.verify(0), lambda: look(lane)):
        with pytest.raises(OnceoverError, match=f"{name}.*of format 4"):
            read()
    refusal = f"{name} on HDFS says that raw is of format 4"
    listed = run("quarantine", lane.name, "list")
    assert (listed.returncode, refusal in listed.stderr) == (1, True), listed.stderr
    code, said = take_root(lane)
    assert (code, refusal in said) == (1, True), said
    lose_ledger()
    with pytest.raises(OnceoverError, match=f"{name}.*of format 4"):
        lane.rebuild()
    assert sorted(lane.hdfs().list(folder))[-1] == f"{newest.number + 1}.json"


@pytest.mark.largest
def test_other_cluster_needs_its_id_to_be_accepted(lane: Lane) -> None:
    real = read_marker(lane).kafka_cluster
    name_other_cluster(lane)
    assert find_problem(lane) is RootProblem.OTHER_CLUSTER
    code, said = take_root(lane)
    assert (code, f"--kafka-cluster {real}" in said) == (1, True)
    assert take_root(lane, "--kafka-cluster", "another")[0] == 2
    assert take_root(lane, "--kafka-cluster", real)[0] == 0
    assert find_problem(lane) is None


@pytest.mark.largest
def test_partition_that_the_ledger_lost_begins_at_the_marker(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    restored = copy_ledger()
    add_partitions(lane, 2)
    lane.land([event(n) for n in range(10)], 1)
    assert sorted((at.kafka_partition, origin) for at, origin in read_marker(lane).origins.items()) == [(0, 0), (1, 0)]
    expire_log(lane, 4, 1)
    lane.produce([event(30)], 1)
    monkeypatch.setenv("ONCEOVER_POSTGRES", restored)
    assert take_root(lane)[0] == 0
    lane.turn()
    (row,) = lane.query(
        "SELECT origin FROM onceover.kafka_partition WHERE pipeline = %s AND kafka_partition = 1", [lane.name]
    )
    assert row["origin"] == 0, "not where the log begins now"


@pytest.mark.largest
def test_two_ledgers_on_an_empty_root_have_one_winner(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane, other = lanes(), make_ledger()
    lane.produce([event(1)])
    with lane.driver():
        pass
    monkeypatch.setenv("ONCEOVER_POSTGRES", other)
    assert find_problem(lane) is RootProblem.OTHER_LEDGER
    monkeypatch.undo()
    assert find_problem(lane) is None


@pytest.mark.largest
def test_rows_of_an_earlier_pipeline_are_refused(lanes: Lanes) -> None:
    lane = lanes()
    lane.query(f"CREATE TABLE aggregates.{lane.name} (n int)")
    lane.query(f"INSERT INTO aggregates.{lane.name} VALUES (1)")
    with pytest.raises(RootRefusedError, match="has rows"):
        lane.detect()


@pytest.mark.largest
def test_reads_warn_and_doctor_names_a_foreign_root(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_POSTGRES", copy_ledger())
    for command in (("windows", lane.name), ("explain", lane.name, "2026-03-01T12:00Z")):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert "warning: " in done.stderr
        assert f"onceover ledger take-root {lane.name}" in done.stderr
    outcomes = json.loads(run("doctor", "--json").stdout)
    (found,) = [each for each in outcomes if each["check"] == f"root of {lane.name}"]
    assert found["state"] == "wrong"


@pytest.mark.largest
def test_another_cluster_ends_detection_and_repair_red(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    request = lane.detect(minutes(0, 10), force=True).request_id
    name_other_cluster(lane)
    for refused in (lane.detect, lambda: lane.repair(request)):
        with pytest.raises(RootRefusedError, match="aMirror"):
            refused()
    lost = (OffsetRange(KafkaPartition("0badcafe", 0), 0, 1),)
    monkeypatch.setattr(frontiers, "read_holes", lambda *_: lost)
    hole = [Finding(Kind.HOLE, {})]
    asks: list[Callable[[PipelineContext], object]] = [
        compare_log,
        lambda context: holes.list_readable_holes(context, hole),
        lambda context: holes.explain_holes(context, hole),
    ]
    for ask in asks:
        with lane.open() as context, pytest.raises(RootRefusedError, match="aMirror"):
            ask(context)
