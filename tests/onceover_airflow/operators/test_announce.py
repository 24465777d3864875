"""The announcing tasks: an event for each announcement, and a mark once Airflow has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover import context as context_module
from onceover.ledger import repair_tries
from onceover.observability import announce
from onceover_airflow.assets import PUBLISHED, pipeline_asset
from onceover_airflow.operators.announce import AnnounceOperator, MarkAnnouncedOperator

pytestmark = pytest.mark.airflow
WINDOWS = [{"start": "2013-01-01T05:00Z"}, {"start": "2013-01-01T06:00Z"}]


class Events(list[Any]):
    """A double of the accessor of an alias' events."""

    def add(self, asset: Any, extra: Any) -> None:
        self.append((asset, extra))


def run(monkeypatch: pytest.MonkeyPatch, found: list[dict[str, Any]]) -> tuple[Any, Events]:
    asked: list[Any] = []

    def answer(result: Any) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            asked.append(given)
            return result

        return call

    monkeypatch.setattr(context_module, "open_ledger", lambda purpose: nullcontext("the ledger"))
    monkeypatch.setattr(announce, "collect_announcements", answer(found))
    monkeypatch.setattr(repair_tries, "mark_announced", answer(3))
    events = Events()
    values = {"dag_run": SimpleNamespace(run_id="r1"), "outlet_events": {PUBLISHED: events}}
    done = AnnounceOperator(task_id="announce").execute(cast(Context, values))
    assert MarkAnnouncedOperator(task_id="mark").execute(cast(Context, values)) == 3
    assert asked == [("the ledger", "r1")] * 2
    return done, events


def test_announcements_of_a_pipeline_are_one_event_of_its_asset(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = {"pipeline": "events", "windows": WINDOWS}, {"pipeline": "events", "windows": WINDOWS[:1]}
    other = {"pipeline": "orders", "windows": WINDOWS}

    done, events = run(monkeypatch, [first, second, other])

    assert done == {"events": 3, "orders": 2}
    assert events == [
        (pipeline_asset("events"), {"published": [first, second]}),
        (pipeline_asset("orders"), {"published": [other]}),
    ]


def test_nothing_new_skips_and_adds_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowSkipException, match="no window was published"):
        run(monkeypatch, [])


def test_asset_is_named_for_the_aggregates() -> None:
    assert (pipeline_asset("flights").name, pipeline_asset("flights").uri) == (
        "aggregates.flights",
        "x-onceover://aggregates/flights",
    )
