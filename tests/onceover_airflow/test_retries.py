"""Errors that Airflow retries."""

from __future__ import annotations

import pytest
from airflow.sdk import ExceptionRetryPolicy, RetryAction

from onceover.errors import BusyError, ConfigurationError, FencedError, UnreachableError
from onceover_airflow.retries import RETRY_POLICY

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (UnreachableError("down"), RetryAction.RETRY),
        (BusyError("claimed"), RetryAction.RETRY),
        (ConfigurationError("wrong"), RetryAction.FAIL),
        (FencedError("overtaken"), RetryAction.FAIL),
        (ValueError("a mistake of ours"), RetryAction.DEFAULT),
    ],
)
def test_transient_errors_alone_are_retried(error: Exception, action: RetryAction) -> None:
    stored = ExceptionRetryPolicy.deserialize(RETRY_POLICY.serialize())  # as the scheduler stores it

    assert stored.evaluate(error, try_number=1, max_tries=2).action is action
