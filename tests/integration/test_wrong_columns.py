"""Columns that ingest wrote wrongly: a repair counts by them, `onceover verify` by the values, and so does each repair
once a person has asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.lane import NOON_MS, Lane, Lanes, event
from tests.integration.planted_failures import minutes
from tests.raw_lines import encode_append

from onceover.model.window import from_ms

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def test_verify_evaluates_the_values_that_a_repair_does_not(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(5)])
    lines = [line for _, line in lane.lines()]
    wrong = replace(lines[4], columns=tuple(b"9" if column == b"4" else column for column in lines[4].columns or ()))
    path = lane.layout.window_file(from_ms(NOON_MS))
    lane.overwrite(path, encode_append(*lines[:4], wrong))
    assert len(lane.repair(lane.detect(minutes(0, 5), force=True).request_id or 0).confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (5, 15, 9)}
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["by_columns"], rests_on["by_value"]) == (5, 0)
    assert "5 records counted by the columns in their lines" in lane.explain_text(0)
    (difference,) = lane.verify(from_ms(NOON_MS))["differences"]
    assert difference == "aggregates: 2 rows differ from what raw says: + (a,5,10,4); - (a,5,15,9)"
    assert len(lane.repair(lane.detect(minutes(0, 5), by_value=True).request_id or 0).confirmed) == 1
    assert_counted_by_value(lane)
    lane.land([event(4)])
    assert len(lane.repair(lane.detect(minutes(0, 5), force=True).request_id or 0).confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (6, 11, 4)}, "a later repair does not believe the columns again"
    assert lane.verify(from_ms(NOON_MS))["equal"]


def assert_counted_by_value(lane: Lane) -> None:
    assert lane.aggregates() == {(0.0, "a"): (5, 10, 4)}
    assert lane.verify(from_ms(NOON_MS))["equal"]
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["by_columns"], rests_on["by_value"]) == (0, 5)
    assert "0 records counted by the columns in their lines, and 5 by their Kafka values" in lane.explain_text(0)
