"""What records count by: the columns in their lines, even wrong ones, or, once a person asks, their values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import minutes
from tests.integration.releases import accept_nameless, make_nameless, release
from tests.raw_lines import encode_append

from onceover import __version__
from onceover.spark.session import read_zone_data

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def test_verify_evaluates_the_values_that_a_repair_does_not(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(5)])
    lines = [line for _, line in lane.lines()]
    wrong = replace(lines[4], columns=tuple(b"9" if column == b"4" else column for column in lines[4].columns or ()))
    path = lane.window_file(0)
    lane.overwrite(path, encode_append(*lines[:4], wrong))
    assert len(lane.repair_detected(minutes(0, 5), force=True).confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (5, 15, 9)}
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["by_columns"], rests_on["by_value"]) == (5, 0)
    assert "5 records counted by the columns in their lines" in lane.explain_text(0)
    (difference,) = lane.verify(0)["differences"]
    assert difference == "aggregates: 2 rows differ (- the table's, + raw's): + (a,5,10,4); - (a,5,15,9)"
    assert len(lane.repair_detected(minutes(0, 5), by_value=True).confirmed) == 1
    assert_counted_by_value(lane)
    lane.land([event(4)])
    assert len(lane.repair_detected(minutes(0, 5), force=True).confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (6, 11, 4)}, "a later repair does not believe the columns again"
    assert lane.verify(0)["equal"]


def assert_counted_by_value(lane: Lane) -> None:
    assert lane.aggregates() == {(0.0, "a"): (5, 10, 4)}
    assert lane.verify(0)["equal"]
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["by_columns"], rests_on["by_value"]) == (0, 5)
    assert "0 records counted by the columns in their lines, and 5 by their Kafka values" in lane.explain_text(0)


@pytest.mark.largest
def test_explain_names_what_evaluated_the_records(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(0), event(1), make_nameless(2)])
    lane.detect()
    rests_on = lane.explain(0)["certificate_rests_on"]
    zones = read_zone_data(lane.spark)
    evaluated_by = [{"code": __version__, "spark": lane.spark.version, "zones": zones}]
    assert (rests_on["basis"], rests_on["by_columns"], rests_on["by_value"]) == ("ledger", None, None)
    assert rests_on["evaluated_by"] == evaluated_by
    said = f"lines evaluated by Onceover {__version__} on Spark {lane.spark.version} with time zones of {zones}"
    assert said in lane.explain_text(0)
    assert (repair(lane), list_versions(lane)) == ((2, 0), [1])

    accept_nameless(lane)
    lane.land([event(3), make_nameless(4)])
    assert (repair(lane), list_versions(lane)) == ((4, 0), [1, 2])
    release(lane)
    assert (repair(lane), list_versions(lane)) == ((5, 0), [1, 2])
    assert lane.explain(0)["certificate_rests_on"]["evaluated_by"] == evaluated_by
    assert "5 records counted by the columns in their lines; lines evaluated by" in lane.explain_text(0)

    lines = [line for name, line in lane.lines() if "quarantine" not in name]
    without = replace(lines[0], columns=None)
    lane.overwrite(lane.window_file(0), encode_append(without, *lines[1:]))
    rows = lane.aggregates()
    assert (repair(lane), lane.aggregates()) == ((0, 5), rows)
    assert "0 records counted by the columns in their lines, and 5 by their Kafka values; " in lane.explain_text(0)


def repair(lane: Lane) -> tuple[int, int]:
    """Repair the window, and return how many of its records count by columns, and by their values."""
    done = lane.repair_detected(minutes(0, 5), force=True)
    assert (len(done.confirmed), done.failed) == (1, ())
    rests_on = lane.explain(0)["certificate_rests_on"]
    return rests_on["by_columns"], rests_on["by_value"]


def list_versions(lane: Lane) -> object:
    return lane.explain(0)["certificate_rests_on"]["contract_versions"]
