"""An example to copy: runs after windows of any pipeline were published, and hears which.

It is paused until you unpause it. For one pipeline, schedule your DAG on `pipeline_asset("PIPELINE")` instead. A run
may have several events, and a window may come twice: work by window and revision.

### When a task is red

- `rerun`: your own code failed. Clear the task: Airflow keeps the events of its run.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, get_current_context, task

from onceover_airflow.assets import PUBLISHED
from onceover_airflow.retries import DEFAULT_ARGS


@task
def rerun() -> list[dict[str, Any]]:
    """List the published windows; here your code computes again what depends on them."""
    events = get_current_context()["triggering_asset_events"]
    return [each for of_asset in events.values() for event in of_asset for each in event.extra["published"]]


@dag(
    schedule=[PUBLISHED],
    default_args=DEFAULT_ARGS,
    is_paused_upon_creation=True,
    tags=["onceover", "example"],
    doc_md=__doc__,
)
def example_downstream() -> None:
    rerun()


example_downstream()
