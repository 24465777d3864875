"""The days that a backfill asked for and that Airflow left out. Those that it runs are in tests/dags/test_policy.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onceover.errors import UsageError
from onceover_airflow.backfill_days import LEFT_OUT, list_left_out, require_all_days

TODAY = datetime(2026, 3, 2, tzinfo=UTC)
NOON = TODAY + timedelta(hours=12)


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        (TODAY - timedelta(days=3), TODAY - timedelta(days=1), []),
        (TODAY - timedelta(days=3), TODAY, [TODAY]),
        (TODAY - timedelta(hours=16), TODAY - timedelta(hours=16), [TODAY]),  # yesterday, in Los Angeles
        (TODAY - timedelta(hours=33), TODAY - timedelta(hours=33), []),  # yesterday, in Tokyo
        (NOON, NOON + timedelta(days=3), [TODAY]),
        (TODAY + timedelta(days=1), TODAY + timedelta(days=3), []),  # Airflow refuses it
    ],
)
def test_day_that_is_not_over_is_left_out_if_it_was_asked(
    first: datetime, last: datetime, days: list[datetime]
) -> None:
    assert list_left_out(first, last, NOON) == days


def test_day_of_which_another_run_goes_on_is_left_out() -> None:
    before = [TODAY - timedelta(days=1), TODAY - timedelta(days=2)]

    assert list_left_out(before[1], before[0], NOON, before) == before[::-1]


def test_days_left_out_are_named_in_the_error() -> None:
    require_all_days({"pipeline": "flights"})
    with pytest.raises(UsageError, match=r"have no run: 2026-03-01, 2026-03-02\. They were not over in UTC"):
        require_all_days({LEFT_OUT: ["2026-03-01", "2026-03-02"]})
