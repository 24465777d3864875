"""Conflicts that no landing shows: a line under an ID that landed with another content, in another window."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.planted_failures import append, encode_line, minutes
from tests.integration.program import run

from onceover.model.window import format_moment, from_ms

pytestmark = [pytest.mark.stack, pytest.mark.rare]
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
    explained = [lane.explain(at) for at in (0, 5)]
    assert "certified" not in [x["state"] for x in explained], "of both windows, though only one file was changed"
    contents = next(f for f in explained[0]["findings"] if f["kind"] == "conflict")["evidence"]["suspects"][0]
    times = {c["event_time"][11:16]: c["hash"] for c in contents["contents"]}
    hash_of = {0: times["12:00"], 60: times["12:06"]}
    window = format_moment(from_ms(NOON_MS))
    done = run("decide", lane.name, window, contents["id"], "--keep", hash_of[kept][:8], "--reason", "a test")
    assert "Now repair 2 windows" in done.stdout, done.stderr
    repair(lane)
    assert lane.aggregates() == expected
    assert [lane.explain(at)["state"] for at in (0, 5)] == ["certified", "certified"]


def repair(lane: Lane) -> None:
    """Sweep, and repair what detection finds, until it finds nothing, at most four times."""
    lane.sweep()
    for _ in range(4):
        if request := lane.detect(minutes(0, 10)).request_id:
            lane.repair(request)
