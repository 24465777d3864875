"""Conflicts that no landing shows: a line under an ID that landed in another window, or that landed nowhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration import extras
from tests.integration.extras import accept_loss, append_and_die, sum_up
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.planted_failures import append, encode_line, expire, minutes
from tests.integration.program import run

from onceover.model.window import format_moment, from_ms

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.largest]
Lanes = Callable[..., Lane]
RIGHT = {(0.0, "a"): (5, 10, 4), (5.0, "a"): (1, 7, 7)}


@pytest.mark.parametrize(("kept", "expected"), [
    (0, RIGHT),
    (60, {(0.0, "a"): (4, 10, 4), (5.0, "a"): (2, 67, 60)}),
])  # fmt: skip
def test_line_of_an_id_that_landed_elsewhere_is_a_conflict(
    lanes: Lanes, kept: int, expected: dict[tuple[object, ...], tuple[object, ...]]
) -> None:
    lane = lanes()
    lane.produce([*(event(n, amount=n) for n in range(5)), event(7, amount=7)])
    lane.ingest()
    assert lane.detect().certified == 2
    append(lane, 5, encode_line(lane, 0, event(6, amount=60)))
    repair(lane)
    states = [lane.explain(at)["state"] for at in (0, 5)]
    assert "certified" not in states, "of both windows, though only one file was changed"
    assert "Now repair 2 windows" in decide(lane, "12:06" if kept else "12:00")
    repair(lane)
    assert lane.aggregates() == expected
    assert [lane.explain(at)["state"] for at in (0, 5)] == ["certified", "certified"]


def test_extra_with_two_contents_counts_as_decided(lanes: Lanes) -> None:
    lane = extras.land(lanes, 50)
    append_and_die(lane, range(50, 60))
    append(lane, 0, encode_line(lane, 50, event(3, amount=7)))
    expire(lane, 60)
    with lane.driver() as driver:
        driver.turn()
    accept_loss(lane, 50, 60)
    lane.ingest()
    failed = lane.repair(lane.detect().request_id or 0).failed
    assert [window for window, _ in failed] == ["2026-03-01T12:00Z"], "the other window's records have one content"
    decide(lane, "12:00")
    extras.repair(lane)
    assert lane.aggregates() == sum_up(range(60))
    assert [lane.explain(at)["state"] for at in (0, 5)] == ["certified", "certified"]


def decide(lane: Lane, time: str) -> str:
    """Decide the first window's first conflict for the content of that time, by the command; return what it says."""
    findings = lane.explain(0)["findings"]
    contested = next(f for f in findings if f["kind"] == "conflict")["evidence"]["contested"][0]
    shown = run("decide", lane.name, format_moment(from_ms(NOON_MS)), contested["id"])
    assert (shown.returncode, shown.stdout.count('"amount"')) == (0, len(contested["contents"])), shown.stdout
    assert all(content["hash"] in shown.stdout for content in contested["contents"])
    (kept,) = [c["hash"][:8] for c in contested["contents"] if c["event_time"][11:16] == time]
    window = format_moment(from_ms(NOON_MS))
    done = run("decide", lane.name, window, contested["id"], "--keep", kept, "--reason", "a test")
    assert done.returncode == 0, done.stderr
    return done.stdout


def repair(lane: Lane) -> None:
    """Sweep, and repair what detection finds, until it finds nothing, at most four times."""
    lane.sweep()
    for _ in range(4):
        if request := lane.detect(minutes(0, 10)).request_id:
            lane.repair(request)
