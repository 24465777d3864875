"""Where reading goes on: every store through the real driver, logs that were cut or have expired, and by hand."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, expire, list_gaps, recreate, skip_to
from tests.integration.program import as_json, run, succeed
from tests.raw_lines import change_record, encode_append

from onceover.ledger import drivers
from onceover.model.finding_kinds import Kind
from onceover.offset_stores import CorruptOffsetsError, open_store
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
RIGHT = {(0.0, "a"): (5, 10, 4), (5.0, "a"): (5, 35, 9)}


def read_stored(lane: Lane) -> dict[int, int]:
    with lane.open() as context, closing(open_store(context.pipeline.ingest.offset_store, context)) as s:
        return dict(s.load([0]).offsets)


# The other stores': tests/onceover_demo/test_experiments.py.
@pytest.mark.parametrize("store", [pytest.param("file", marks=pytest.mark.rare), "postgres"])
def test_driver_resumes_where_the_last_one_stopped(over: Lanes, store: str) -> None:
    lane = over(store)
    lane.land([event(n, amount=n) for n in range(7)])
    assert read_stored(lane) == {0: 7}
    lane.land([event(n, amount=n) for n in range(7, 10)])
    assert read_stored(lane) == {0: 10}
    assert lane.aggregates() == RIGHT
    assert len(list(lane.lines())) == 10
    recreate(lane)
    lane.land([event(n, "new") for n in range(15)])
    ids = [(x.record.source, x.record.offset) for _, x in lane.lines()]
    assert len(ids) == len(set(ids)) == 25, "from the new log's start, though 10 lies within it"
    assert read_stored(lane) == {0: 15}


def test_start_without_a_store_rereads_and_repair_counts_once(over: Lanes) -> None:
    lane = over("none")
    lane.land([event(n, amount=n) for n in range(10)])
    lane.ingest()
    assert len(list(lane.lines())) == 20
    lane.repair_detected()
    assert lane.aggregates() == RIGHT


@pytest.mark.largest
def test_start_at_the_end_without_a_store_skips_reread_records(over: Lanes) -> None:
    lane = over("none", first_start="latest")
    lane.land([event(0)])
    lane.produce([event(n, amount=n) for n in range(10)])
    with lane.driver() as driver:
        assert driver.turn().records == 0
    assert list_gaps(lane) == [(1, 11, "lost")]
    lane.repair_detected()
    assert {x.record.offset for _, x in lane.lines()} == set(range(1, 11))
    assert lane.aggregates() == RIGHT


@pytest.mark.largest
def test_records_expired_before_a_known_groups_start_are_a_hole(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(10)])
    skip_to(lane, 3)  # another consumer stopped there
    expire(lane, 5)
    with lane.driver() as driver:
        assert driver.turn().records == 5
    assert list_gaps(lane) == [(3, 5, "expired")]


@pytest.mark.largest
def test_log_shorter_than_the_stored_offset_is_a_finding(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(10)])
    with lane.driver() as driver:
        driver._offsets.store.save({0: 12}, "")
        driver.turn()
        assert read_stored(lane) == {0: 10}
        (found,) = lane.detect().findings
        assert found.kind is Kind.TRUNCATED
        assert [cut[1:] for cut in found.evidence["end_and_stored"]] == [[0, 10, 12]]  # type: ignore[attr-defined]
        assert "it ends at 10, 12 was stored" in lane.explain_text(0)
        lane.produce([event(n) for n in (10, 11)])
        driver.turn()
    assert lane.detect().findings == ()
    noted = lane.query(
        "SELECT kind, resolved_at IS NOT NULL AS over FROM onceover.finding WHERE pipeline = %s "
        "AND window_start IS NULL",
        [lane.name],
    )
    assert [tuple(row.values()) for row in noted] == [("truncated log", True)]


@pytest.mark.largest
def test_offsets_set_in_a_new_log_leave_a_hole_before_them(over: Lanes) -> None:
    lane = over("file", partitions=2)
    for kafka_partition in (0, 1):
        lane.produce([event(n) for n in range(5)], kafka_partition)
    lane.ingest()
    recreate(lane, 2)
    for kafka_partition in (0, 1):
        lane.produce([event(n, "new") for n in range(8)], kafka_partition)
    done = run("offsets", lane.name, "show")
    assert (done.returncode, "which no longer exists" in done.stdout) == (1, True)
    assert "missing: 1" in run("offsets", lane.name, "set", "0=3", "--reason", "x").stderr
    succeed("offsets", lane.name, "set", "0=3", "1=0", "--reason", "the first three are tests")
    with lane.driver() as driver:
        assert driver.turn().records == 13
    assert list_gaps(lane) == [(0, 3, "lost")]


@pytest.mark.largest
def test_offsets_are_shown_set_and_copied_by_hand(over: Lanes, stack: Stack) -> None:
    lane = over("kafka")
    lane.land([event(n, amount=n) for n in range(10)])
    (row,) = as_json("offsets", lane.name, "show")["kafka_partitions"]
    assert (row["stored"], row["earliest"], row["end"], row["frontier"]) == (10, 0, 10, 10)
    assert "keeps its offsets in kafka: consumer group" in succeed("offsets", lane.name, "show")

    assert run("offsets", lane.name, "set", "0=4").returncode == 2, "it needs a reason"
    assert "lies outside the log" in run("offsets", lane.name, "set", "0=11", "--reason", "x").stderr
    beyond = run("offsets", lane.name, "set", f"0={1 << 63}", "--reason", "x")
    assert (beyond.returncode, "the largest possible number is 9223372036854775807" in beyond.stderr) == (2, True)
    nowhere = run("offsets", lane.name, "set", f"{10**20}=0", "--reason", "x")
    assert (nowhere.returncode, "the largest possible number is 99999" in nowhere.stderr) == (2, True)
    assert "has no Kafka partition 1" in run("offsets", lane.name, "set", "1=0", "--reason", "x").stderr
    with lane.ledger() as ledger:
        epoch = drivers.acquire(ledger, lane.name, "an ingest that runs")
        done = run("offsets", lane.name, "set", "0=4", "--reason", "read again")
        assert (done.returncode, "has a driver already, an ingest that runs" in done.stderr) == (75, True)
        drivers.end_epoch(ledger, epoch)
    succeed("offsets", lane.name, "set", "0=4", "--reason", "read again")
    assert read_stored(lane) == {0: 4}
    lane.ingest()
    lane.repair_detected()
    assert lane.aggregates() == RIGHT

    with lane.open() as context, closing(open_store("file", context)) as other:
        other.save({0: 1}, "an older topic")
        Path(other.place).write_text("0 1")  # cut: a copy overwrites it all the same
        succeed("offsets", lane.name, "copy", "--to", "file", "--reason", "to look at")
        assert other.load([0]).offsets == {0: 10}
    assert "needs its path" in run("offsets", lane.name, "copy", "--to", "checkpoint", "--reason", "x").stderr
    odd = ("--to", "hdfs", "--path", "/a/../b", "--reason", "x")
    assert "'/a/../b' is not valid" in run("offsets", lane.name, "copy", *odd).stderr
    stack.up(["zookeeper"])
    said = succeed("offsets", lane.name, "copy", "--to", "zookeeper", "--reason", "one server less")
    assert 'write offset_store = "zookeeper"' in said
    lane.toml.write_text(lane.toml.read_text().replace('offset_store = "kafka"', 'offset_store = "zookeeper"'))
    assert read_stored(lane) == {0: 10}
    lane.produce([event(3, amount=100)])
    assert sum(p.records for p in lane.ingest()) == 1
    changes = lane.query(
        "SELECT why, detail FROM onceover.action WHERE pipeline = %s AND kind = 'set offsets' ORDER BY action_id",
        [lane.name],
    )
    changed = ((row["why"], row["detail"]) for row in changes)
    assert [(each["store"], why, each["before"], each["after"]) for why, each in changed] == [
        ("kafka", "read again", {"0": 10}, {"0": 4}),
        ("file", "to look at", None, {"0": 10}),
        ("zookeeper", "one server less", {}, {"0": 10}),
    ]


@pytest.mark.largest
def test_line_past_the_end_of_a_log_counts(over: Lanes) -> None:
    """A ledger that was restored from before a cut knows no end that reaches the line."""
    lane = over("postgres")
    lane.land([event(n % 5, amount=n) for n in range(10)])
    own = next(each for _, each in lane.lines())
    append(lane, 0, encode_append(change_record(own, offset=12, value=event(0, amount=100))))
    assert lane.repair_detected().failed == ()
    assert lane.aggregates() == {(0.0, "a"): (11, 145, 100)}
    past = ("offsets", lane.name, "set", "0=13", "--reason", "it was cut at 10")
    assert run(*past).returncode == 2
    assert "or from the log's end if that is smaller" in succeed(*past, "--past-end")
    lane.ingest()
    assert (lane.aggregates(), list_gaps(lane)) == ({(0.0, "a"): (11, 145, 100)}, [])


@pytest.mark.largest
def test_corrupt_store_stops_the_driver_and_is_reset_by_hand(over: Lanes) -> None:
    lane = over("file")
    lane.land([event(n, amount=n) for n in range(10)])
    with lane.open() as context, closing(open_store("file", context)) as store:
        Path(store.place).write_text("0 1")
    with lane.driver() as driver, pytest.raises(CorruptOffsetsError, match=f"onceover offsets {lane.name} set"):
        driver.turn()
    done = run("offsets", lane.name, "show")
    assert (done.returncode, "is cut or was changed" in done.stdout) == (1, True)
    (row,) = [row for row in json.loads(run("doctor", "--json").stdout) if row["check"] == f"offsets of {lane.name}"]
    assert (row["state"], "is cut or was changed" in row["what"]) == ("wrong", True)
    succeed("offsets", lane.name, "set", "0=10", "--reason", "as the frontier says")
    lane.produce([event(3, amount=100)])
    assert sum(p.records for p in lane.ingest()) == 1
