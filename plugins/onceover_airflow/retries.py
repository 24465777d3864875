"""The arguments of every task: what is refused before it begins, and which errors Airflow retries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Context, ExceptionRetryPolicy, RetryAction, RetryRule

from onceover_airflow.backfill_days import LEFT_OUT
from onceover_airflow.notifier import on_failure
from onceover_airflow.run_request import refuse_unknown_keys


def check_conf(context: Context) -> None:
    """Raise UsageError for a key of the run's conf that its DAG's form does not have, nor a backfill's run."""
    conf = {key: value for key, value in (context["dag_run"].conf or {}).items() if key != LEFT_OUT}
    refuse_unknown_keys(conf, context["dag"].params)


RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception="onceover.errors.TransientError",
            action=RetryAction.RETRY,
            retry_delay=timedelta(seconds=30),
            reason="a part is down or busy; the same call may succeed later",
        ),
        RetryRule(
            exception="onceover.errors.TerminalError",
            action=RetryAction.FAIL,
            reason="fails again until the cause is fixed; the message names it",
        ),
    ]
)
"""Errors that may pass by themselves, never those that need a fix first."""

DEFAULT_ARGS: dict[str, Any] = {
    "owner": "onceover",
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "retry_policy": RETRY_POLICY,
    # A task that hangs would hold up every later run: detection is a matter of seconds.
    "execution_timeout": timedelta(minutes=30),
    "on_failure_callback": on_failure(),
    "pre_execute": check_conf,
}
"""The arguments of every task of Onceover's DAGs. Unknown errors are retried: each step may be run twice."""
