"""Params: what Airflow itself refuses before a run exists."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from airflow.sdk import Param
from airflow.sdk.exceptions import ParamValidationError

from onceover.errors import UsageError
from onceover_airflow import params

pytestmark = pytest.mark.airflow


def test_window_is_accepted_in_every_written_form() -> None:
    bound = params.window_bound("From", "Start.")

    for text in ("2013-01-01T05:00Z", "2013-01-01T05:00:00+01:00", "2013-01-01T05:00:00.000Z"):
        assert bound.resolve(text) == text


@pytest.mark.parametrize("value", ["2013-01-01T05:00", "2013-01-01", "now", "", None, 5])
def test_naive_time_is_refused_by_the_form(value: object) -> None:
    with pytest.raises(ParamValidationError):
        params.window_bound("From", "Start.").resolve(value)


def test_pipeline_is_filled_in_if_there_is_only_one() -> None:
    assert params.one_pipeline(["events"]).resolve() == "events"
    with pytest.raises(ParamValidationError):
        params.one_pipeline(["events", "orders"]).resolve()


@pytest.mark.parametrize("names", [[], ["events"], ["events", "orders"]])
def test_form_of_a_scheduled_dag_always_has_a_valid_default(names: list[str]) -> None:
    assert params.pipelines(names).resolve() == (names[0] if len(names) == 1 else None)


@pytest.mark.parametrize("form", [params.one_pipeline, params.pipelines])
def test_unknown_pipeline_is_refused_by_the_form(form: Callable[[list[str]], Param]) -> None:
    with pytest.raises(ParamValidationError):
        form(["events", "orders"]).resolve("flights")


def test_pipelines_are_chosen_explicitly() -> None:
    names = ["events", "orders"]

    assert params.chosen_pipelines(params.EVERY, names) == names
    assert params.chosen_pipelines("orders", names) == ["orders"]
    for empty in (None, ""):
        with pytest.raises(UsageError, match="never means all"):
            params.chosen_pipelines(empty, names)
    with pytest.raises(UsageError, match="choose one of: events, orders"):
        params.chosen_pipelines("flights", names)
