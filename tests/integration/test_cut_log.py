"""Kafka's log cut and grown again on a real broker: what landed is compared, read again, and decided on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.cut_logs import cut_log, land_and_cut, repair
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.planted_failures import append, copy_line, lose_ledger, minutes, spoil
from tests.integration.program import run

from onceover.model.finding_kinds import Kind
from onceover.model.window import format_moment, from_ms
from onceover.repair import suspicions
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
Lanes = Callable[..., Lane]
NOON = format_moment(from_ms(NOON_MS))


def land_cut_and_grow(lane: Lane, stack: Stack) -> None:
    """Land six records in two windows, cut the log to three, and let others take their offsets."""
    land_and_cut(lane, stack)
    lane.produce([event(n, amount=70 + n) for n in (3, 11, 12, 13)])


def decide(lane: Lane, *arguments: str) -> str:
    done = run("decide", lane.name, NOON, *arguments, "--reason", "a test")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cut_log_is_read_again_and_decided_by_a_person(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.ingest()
    held = {(x.record.offset, x.record.value) for _, x in lane.lines()}
    assert {(at, value) for (_, at), (_, value) in lane.log().items()} <= held, "all that the log holds is in raw"
    repair(lane)
    states = {at: lane.explain(at)["state"] for at in (0, 5, 10)}
    assert "certified" not in states.values(), "offsets 3, 4 and 5 have two contents each, in three windows"
    contested = next(f for f in lane.explain(5)["findings"] if f["kind"] == "conflict")["evidence"]["contested"]
    assert sorted(int(s["id"][-5:]) for s in contested) == [4, 5], "of both windows, though each holds one content"
    assert "Now repair 1 window" in decide(lane, "all", "--keep", "newest")
    done = run(
        "decide", lane.name, format_moment(from_ms(NOON_MS + 300_000)), "all", "--keep", "newest", "--reason", "x"
    )
    assert "Now repair 2 windows" in done.stdout, done.stderr
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 76, 73), (10.0, "a"): (3, 246, 83)}, "what the log holds now"
    assert {at: lane.explain(at)["state"] for at in (0, 5, 10)} == dict.fromkeys((0, 5, 10), "certified")
    assert all(lane.verify(from_ms(NOON_MS + at * 60_000))["equal"] for at in (0, 5, 10))
    assert lane.detect() == lane.detect()
    assert lane.detect().judged == 0


@pytest.mark.largest
def test_oldest_content_counts_after_a_decision(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.ingest()
    repair(lane)
    for window in (NOON, format_moment(from_ms(NOON_MS + 300_000))):
        assert run("decide", lane.name, window, "all", "--keep", "oldest", "--reason", "x").returncode == 0
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 6, 3), (5.0, "a"): (2, 11, 6), (10.0, "a"): (1, 83, 83)}
    assert {at: lane.explain(at)["state"] for at in (0, 5, 10)} == dict.fromkeys((0, 5, 10), "certified")


@pytest.mark.largest
def test_cut_log_reopens_windows_without_ingest(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    (finding,) = lane.detect().findings
    assert (finding.kind, [x[2] for x in finding.evidence["diverged_from"]]) == (Kind.TRUNCATED, [3])  # type: ignore[attr-defined]
    assert [lane.explain(at)["state"] for at in (0, 5)] == ["closed", "closed"], "both hold records from the cut on"
    assert "with other records than landed" in lane.explain_text(0)


def test_cut_log_that_is_still_short_is_compared_when_it_grows(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(3)])
    lane.produce([event(n, amount=n) for n in (3, 5, 6)])
    lane.ingest()
    assert lane.detect().certified == 2
    cut_log(stack, lane.topic, 3)
    with lane.driver() as driver:
        driver.turn()
        lane.produce([event(3, amount=3)])
        lane.produce([event(n, amount=n) for n in (5, 6)])
        driver.turn()
    lane.ingest()
    assert lane.detect().failed, "the same records under a new epoch are compared, but for Kafka's timestamps"
    repair(lane)
    assert "conflict" in {f["kind"] for f in lane.explain(0)["findings"]}, "a timestamp is part of a record's content"


@pytest.mark.largest
def test_contents_are_compared_only_if_all_raw_is_there(
    lanes: Lanes, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspicions, "_AT_ONCE", 2)
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.ingest()
    file = lane.layout.window_file(from_ms(NOON_MS + 300_000))
    lane.hdfs().rename(file, f"{file}.away")
    repair(lane, 1)
    assert lane.explain(10)["state"] != "certified", "offsets 4 and 5 may have another content in the file that is away"
    lane.hdfs().rename(f"{file}.away", file)
    repair(lane, 1)
    held = {text.record.offset: text for name, text in lane.lines() if name.endswith(file.rpartition("/")[2])}
    assert sorted(held) == [4, 5], "raw has both again"
    states = [lane.explain(at)["state"] for at in (0, 5, 10)]
    assert "certified" not in states, "each of these windows has an ID with two contents"
    for at in (0, 5):
        window = format_moment(from_ms(NOON_MS + at * 60_000))
        assert run("decide", lane.name, window, "all", "--keep", "newest", "--reason", "x").returncode == 0
    repair(lane, 2)
    assert lane.aggregates() == {(0.0, "a"): (4, 76, 73), (10.0, "a"): (3, 246, 83)}, "what the log holds now"
    assert [lane.explain(at)["state"] for at in (0, 5, 10)] == ["certified"] * 3


@pytest.mark.largest
def test_window_that_lost_its_raw_is_given_up(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.ingest()
    lane.hdfs().write(lane.layout.window_file(from_ms(NOON_MS + 300_000)), b"", overwrite=True)
    repair(lane, 1)
    assert "certified" not in {lane.explain(at)["state"] for at in (0, 5, 10)}
    refused = run("retention", lane.name, "--adopt-missing", "--dry-run", "--json")
    assert (refused.returncode, f"onceover reread {lane.name} 2026-03-01T12:05Z" in refused.stdout) == (1, True)
    lane.reread(5)  # the log holds other windows' records there
    done = run("retention", lane.name, "--adopt-missing", "--reason", "no backup")
    assert (done.returncode, "1 window declared expired" in done.stdout) == (0, True), done.stdout + done.stderr
    repair(lane, 1)
    decide(lane, "all", "--keep", "newest")
    repair(lane, 2)
    assert [lane.explain(at)["state"] for at in (0, 5, 10)] == ["certified", "expired", "certified"]
    assert lane.aggregates() == {(0.0, "a"): (4, 76, 73), (5.0, "a"): (2, 11, 6), (10.0, "a"): (3, 246, 83)}


@pytest.mark.largest
def test_unreadable_file_holds_up_only_its_own_ids(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.produce([event(20)])
    lane.ingest()
    append(lane, 20, copy_line(lane, 7))
    spoil(lane, lane.layout.window_file(from_ms(NOON_MS + 300_000)))
    request = lane.detect(minutes(0, 25)).request_id
    assert request
    done = lane.repair(request)
    assert done.confirmed == ("2026-03-01T12:20Z",), "its file can be read, and no ID of it landed twice"
    (left,) = (why for window, why in done.left if window == "2026-03-01T12:10Z")
    assert "2026-03-01T12:05Z does not hold them as they landed" in left
    assert "certified" not in {lane.explain(at)["state"] for at in (0, 5, 10)}


@pytest.mark.largest
def test_log_cut_while_the_ledger_was_lost_is_read_again(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lose_ledger()
    assert lane.rebuild().written.records == 6, "raw does not know that offsets 3, 4 and 5 have other records now"
    (finding,) = lane.detect().findings
    assert [x[2] for x in finding.evidence["diverged_from"]] == [3], "as the epochs of raw's lines say"  # type: ignore[attr-defined]
    assert "certified" not in [lane.explain(at)["state"] for at in (0, 5)]
    lane.ingest()
    held = {(x.record.offset, x.record.value) for _, x in lane.lines()}
    assert {(at, value) for (_, at), (_, value) in lane.log().items()} <= held, "all that the log holds is in raw"
    repair(lane)
    assert "certified" not in {lane.explain(at)["state"] for at in (0, 5, 10)}, "a person has to decide"
    for minute in (0, 300_000):
        decided = run(
            "decide", lane.name, format_moment(from_ms(NOON_MS + minute)), "all", "--keep", "newest", "--reason", "x"
        )
        assert decided.returncode == 0, decided.stderr
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 76, 73), (10.0, "a"): (3, 246, 83)}, "what the log holds now"
    assert {lane.explain(at)["state"] for at in (0, 5, 10)} == {"certified"}
