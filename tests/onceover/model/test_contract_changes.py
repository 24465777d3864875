from __future__ import annotations

from dataclasses import replace

import pytest

from onceover.model.contract import Contract, Key
from onceover.model.contract_changes import list_added_measures, list_changed_parts, list_refused_changes
from onceover.model.measures import DISTINCT, SKIPPED, Derived, Measure, split_measure

OLD = Contract(
    topic="events",
    window_minutes=5,
    format="json",
    schema="at BIGINT, kind STRING",
    required=("at",),
    event_time="value.at",
    tombstone="quarantine",
    keys=(Key("kind", "value.kind"),),
    measures=(Measure("events", "count", "*"), Measure("last", "max", "value.at")),
    horizon_ms=None,
    skew_ms=None,
)
EVENTS, LAST = OLD.measures


def test_reading_may_change_and_measures_may_be_added() -> None:
    new = replace(
        OLD,
        schema="at BIGINT, kind STRING, more INT",
        event_time="value.at + 1",
        horizon_ms=1000,
        keys=(Key("kind", "upper(value.kind)"),),
        measures=(Measure("more", "sum", "value.more"), LAST, Measure("events", "count", "value.kind")),
    )
    assert list_refused_changes(OLD, new) == []
    assert list_changed_parts(OLD, new) == ["bounds.horizon", "event_time", "keys", "measures", "schema"]
    assert list_added_measures(OLD, new) == ["more"]


PARTS = (Measure("x_sum", "sum", "value.at"), Measure("x_count", "count", "value.at"))
WITH_PARTS = replace(OLD, measures=PARTS)
AVERAGED = replace(WITH_PARTS, derived=(Derived("x", "avg", 2),))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (AVERAGED, WITH_PARTS, ["measure x is gone"]),
        (WITH_PARTS, AVERAGED, ["measure x_sum is gone", "measure x_count is gone"]),
        (OLD, replace(OLD, measures=(*OLD.measures, *PARTS), derived=AVERAGED.derived), []),
        (AVERAGED, replace(AVERAGED, derived=(Derived("x", "avg", 3),)), ["measure x has the scale 3, not 2"]),
    ],
)
def test_average_is_added_with_its_parts_or_not_at_all(old: Contract, new: Contract, why: list[str]) -> None:
    assert list_refused_changes(old, new) == why


def make_sketched(operation: str, *skips: Measure) -> Contract:
    stored, derived = split_measure("ds", operation, "value.at", 2)
    return replace(OLD, measures=(*OLD.measures, *stored, *skips), derived=derived)


SKETCHED = make_sketched(DISTINCT)
SKIPPING = make_sketched(DISTINCT, Measure("ds_skipped", SKIPPED, "ds_sketch"))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (SKETCHED, OLD, "measure ds is gone"),
        (SKETCHED, make_sketched("count"), "measure ds is a count, not an approx_count_distinct"),
        (SKETCHED, make_sketched("avg"), "measure ds is an avg, not an approx_count_distinct"),
        (make_sketched("min_by"), make_sketched("max_by"), "measure ds is a max_by, not a min_by"),
        (make_sketched("avg"), make_sketched("sum"), "measure ds is a sum, not an avg"),
        (SKIPPING, OLD, "measure ds is gone"),
        (SKIPPING, SKETCHED, "on_null no longer skips for measure ds"),
    ],
)
def test_refusal_names_the_measure_of_the_toml_once(old: Contract, new: Contract, why: str) -> None:
    assert list_refused_changes(old, new) == [why]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (replace(OLD, topic="others"), "topic"),
        (replace(OLD, window_minutes=10), "window_minutes"),
        (replace(OLD, keys=(*OLD.keys, Key("place", "value.kind"))), "key place is new"),
        (replace(OLD, keys=()), "key kind is gone"),
        (replace(OLD, measures=(EVENTS,)), "measure last is gone"),
        (replace(OLD, measures=(EVENTS, replace(LAST, operation="min"))), "measure last is a min, not a max"),
    ],
)
def test_change_of_a_shared_setting_is_refused(new: Contract, why: str) -> None:
    assert list_refused_changes(OLD, new) == [why]


def test_renamed_key_is_one_gone_and_one_new() -> None:
    renamed = replace(OLD, keys=(Key("sort", "value.kind"),))
    assert list_refused_changes(OLD, renamed) == ["key sort is new", "key kind is gone"]
