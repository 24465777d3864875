"""Accept offsets as lost that Kafka no longer has, as `onceover accept-loss` does. This cannot be undone.

Ingest's frontier moves past these offsets, so that later windows can close again. The windows from `from` to `to`,
which may lack their records, are judged again, and their certificates state the loss for ever, with the reason and the
user who triggered this run. `onceover holes PIPELINE` shows the offsets.

### When a task is red

- `accept`: the offsets are not all lost, or the windows are wrong; the error in the log says which. Nothing was
  accepted then. Trigger again with correct values.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_decision
from onceover_airflow.operators.decisions import AcceptLossOperator


@dag(
    schedule=None,
    **describe_decision(
        __doc__,
        offsets=params.lost_offsets(),
        **params.window_range("Start of the first window that may lack their records."),
        kind=params.kind_of_loss(),
    ),
)
def accept_loss() -> None:
    # A batch of a thousand offsets, of each of which a reader dies, takes an hour.
    AcceptLossOperator(task_id="accept", pipeline="{{ params.pipeline }}", execution_timeout=timedelta(hours=6))


accept_loss()
