"""A run's request, from params that may hold anything."""

from __future__ import annotations

import pytest

from onceover.errors import UsageError
from onceover.model.windowing import Windowing
from onceover_airflow.run_request import RunRequest, chosen_name
from onceover_airflow.windows import DataInterval

TIMES = {"from": "2013-01-05T05:00Z", "to": "2013-01-05T07:00Z"}


def request(params: dict[str, object], reason_needed: bool = True) -> RunRequest:
    interval = DataInterval(None, None)
    return RunRequest.from_run({**TIMES, **params}, interval, windowing=Windowing(60), reason_needed=reason_needed)


def test_reason_is_kept_as_one_line() -> None:
    assert request({"reason": "  disk\n full "}).reason == "disk full"


@pytest.mark.parametrize("reason", [None, "", "  \n"])
def test_real_run_alone_needs_a_reason(reason: str | None) -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        request({"reason": reason})
    assert request({"dry_run": True, "reason": reason}).dry_run
    assert request({"reason": reason}, reason_needed=False).reason is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"reason": "x", "force": "false"}, "'force' is a str"),
        ({"reason": "x", "dry_run": 1}, "'dry_run' is a int"),
        ({"reason": "x", "plan": "abc"}, "'plan' is not a token"),
        ({"reason": "x", "plan": 7}, "'plan' is not a token"),
        ({"reason": "x" * 501}, "501 characters"),
        ({"reason": "a\x00b"}, "cannot be shown"),
        ({"reason": 7}, "write a sentence"),
        ({"reason": "x", "from": 1357000000}, "'from' is a int"),
    ],
)
def test_value_of_another_kind_is_refused(params: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        request(params)


@pytest.mark.parametrize("value", [None, "", "  ", ["events"]])
def test_empty_choice_of_pipeline_never_means_all(value: object) -> None:
    with pytest.raises(UsageError, match="never means all"):
        chosen_name(value)
