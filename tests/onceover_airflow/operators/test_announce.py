"""The announcing tasks: an event for each day of a pipeline, and a mark once Airflow has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import AssetAny, Context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

from onceover import context as context_module
from onceover.ledger import announcements
from onceover.observability import announce
from onceover_airflow.assets import DUE, DUE_ALIAS, pipeline_asset, repaired_days
from onceover_airflow.operators.announce import AnnounceOperator, MarkAnnouncedOperator

pytestmark = pytest.mark.airflow
PIPELINES = ["events", "orders", "parts"]


def replace_ledger(monkeypatch: pytest.MonkeyPatch, *, days: list[dict[str, Any]], is_due: bool = False) -> list[Any]:
    """Replace what the tasks read of the ledger; return a list of their questions."""
    asked: list[Any] = []

    def answer(result: Any) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            asked.append(given)
            return result

        return call

    monkeypatch.setattr(context_module, "open_ledger", lambda purpose: nullcontext("the ledger"))
    monkeypatch.setattr(announce, "collect_announcements", answer(days))
    monkeypatch.setattr(announcements, "mark_announced", answer(3))
    monkeypatch.setattr(announcements, "is_due", answer(is_due))
    return asked


def make_context() -> Context:
    return cast(Context, {"dag_run": SimpleNamespace(run_id="r1"), "outlet_events": OutletEventAccessors()})


def list_sent(context: Context) -> list[Any]:
    """Return the events of a task as its result names them to Airflow's server."""
    return list(_serialize_outlet_events(context["outlet_events"]))


def test_each_day_is_an_event_with_an_extra_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    days = [
        {"pipeline": "events", "day": "2026-11-28", "published": [{"windows": [1]}]},
        {"pipeline": "events", "day": "2026-11-29", "published": [{"windows": [2]}]},
        {"pipeline": "orders", "day": "2026-11-29", "published": [{"windows": [3]}]},
    ]
    asked, context = replace_ledger(monkeypatch, days=days), make_context()
    task = AnnounceOperator(task_id="announce", pipelines=PIPELINES)

    assert task.execute(context) == {"events": ["2026-11-28", "2026-11-29"], "orders": ["2026-11-29"]}

    assert asked == [("the ledger", "r1", PIPELINES)]
    assert list_sent(context) == [
        {
            "dest_asset_key": {
                "name": f"aggregates.{day['pipeline']}",
                "uri": f"x-onceover://aggregates/{day['pipeline']}",
            },
            "partition_key": day["day"],
            "extra": {"published": day["published"]},
        }
        for day in days
    ]


def test_outlet_without_a_day_has_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_ledger(monkeypatch, days=[{"pipeline": "orders", "day": "2026-11-29", "published": []}])
    task = AnnounceOperator(task_id="announce", pipelines=PIPELINES)
    assert task.outlets == list(map(pipeline_asset, PIPELINES))

    task.execute(make_context())

    assert task.outlets == [pipeline_asset("orders")]


def test_nothing_new_skips_and_adds_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_ledger(monkeypatch, days=[])
    context = make_context()

    with pytest.raises(AirflowSkipException, match="no window was published"):
        AnnounceOperator(task_id="announce", pipelines=PIPELINES).execute(context)
    assert list_sent(context) == []


@pytest.mark.parametrize("is_due", [False, True])
def test_mark_starts_the_next_run_if_more_is_due(monkeypatch: pytest.MonkeyPatch, *, is_due: bool) -> None:
    asked, context = replace_ledger(monkeypatch, days=[], is_due=is_due), make_context()

    assert MarkAnnouncedOperator(task_id="mark", pipelines=PIPELINES).execute(context) == 3

    assert asked == [("the ledger", "r1"), ("the ledger", PIPELINES)]
    sent = [(each["source_alias_name"], each["dest_asset_key"]["name"]) for each in list_sent(context)]
    assert sent == ([(DUE_ALIAS.name, DUE.name)] if is_due else [])


def test_asset_is_named_for_the_aggregates() -> None:
    assert (pipeline_asset("flights").name, pipeline_asset("flights").uri) == (
        "aggregates.flights",
        "x-onceover://aggregates/flights",
    )


def test_days_of_no_pipeline_are_a_schedule_without_runs() -> None:
    assert cast(AssetAny, repaired_days().asset_condition).objects == ()
