"""An example to copy: runs for each day of which windows of any pipeline have other rows now, and hears which.

It is paused until you unpause it. For one pipeline, schedule your DAG by `repaired_days("PIPELINE")` instead. A run may
have several events, and a window may come twice: work by window, revision and certificate. A day that changes again
while its run goes on has another run after it.

### When a task is red

- `rerun`: your own code failed. Clear the task: Airflow keeps the events of its run.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, get_current_context, task

from onceover_airflow.assets import repaired_days
from onceover_airflow.params import known_pipelines
from onceover_airflow.retries import DEFAULT_ARGS


@task
def rerun() -> dict[str, Any]:
    """Name the day and list its changed windows; here your code computes again what depends on them."""
    context = get_current_context()
    events = [event for of_asset in context["triggering_asset_events"].values() for event in of_asset]
    return {
        "day": context["dag_run"].partition_key,
        "published": [each for event in events for each in event.extra["published"]],
    }


@dag(
    schedule=repaired_days(*known_pipelines()),
    max_active_runs=1,  # a day's next run reads what its last one has written
    default_args=DEFAULT_ARGS,
    is_paused_upon_creation=True,
    tags=["onceover", "example"],
    doc_md=__doc__,
)
def example_downstream() -> None:
    rerun()


example_downstream()
