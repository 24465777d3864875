"""Decide which of several contents of one record ID counts, as `onceover decide` does; the next repair uses it.

One ID has several contents if Kafka's log was truncated and its offsets were written again. `onceover explain PIPELINE
WINDOW` shows them. The other contents stay in raw, and the certificate names the decision, with the reason and the user
who triggered this run. A later decision about the same ID replaces this one. Then repair the windows that the task's
log names.

### When a task is red

- `decide`: the ID, the hash or the window is wrong, no open conflict names them, or of some IDs it is not known which
  content is the newest; the error in the log says which, and lists those IDs. Trigger again with correct values.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.decision_dag import describe_decision
from onceover_airflow.operators.decisions import DecideOperator


@dag(
    schedule=None,
    **describe_decision(
        __doc__,
        window=params.one_window(),
        id=params.record_id(),
        keep=params.kept_content(),
    ),
)
def decide_conflict() -> None:
    DecideOperator(task_id="decide", pipeline="{{ params.pipeline }}")


decide_conflict()
