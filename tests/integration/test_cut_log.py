"""Kafka's log cut and grown again on a real broker: what was landed under its offsets is compared, and read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.cut_logs import cut_log
from tests.integration.lane import Lane, event

from onceover.model.finding_kinds import Kind
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
Lanes = Callable[..., Lane]


def land_and_cut(lane: Lane, stack: Stack) -> None:
    """Land six records in two windows and certify them, cut the log to three, and let others take their offsets."""
    lane.produce([event(n, amount=n) for n in range(3)])
    lane.produce([event(n, amount=n) for n in (3, 5, 6)])
    lane.ingest()
    assert lane.detect().certified == 2
    cut_log(stack, lane.topic, 3)
    lane.produce([event(n, amount=70 + n) for n in (3, 11, 12, 13)])


def test_cut_log_is_read_again_from_the_cut(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_and_cut(lane, stack)
    with lane.driver() as driver:
        driver.turn()
    held = {(x.record.offset, x.record.value) for _, x in lane.lines()}
    assert {(at, value) for (_, at), (_, value) in lane.log().items()} <= held, "all that the log holds is in raw"


def test_cut_log_reopens_windows_without_ingest(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_and_cut(lane, stack)
    (finding,) = lane.detect().findings
    assert (finding.kind, [x[2] for x in finding.evidence["diverged_from"]]) == (Kind.TRUNCATED, [3])  # type: ignore[attr-defined]
    assert [lane.explain(at)["state"] for at in (0, 5)] == ["closed", "closed"], "both hold records from the cut on"
    assert "with other records than landed" in lane.explain_text(0)
