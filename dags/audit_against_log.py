"""Read Kafka's log and raw again and compare all records that they hold with the aggregates, window by window.

Trigger this DAG by hand, or from another DAG after a migration or an incident. The audit changes nothing. A record
counts if the log or raw holds it, whether or not the ledger knows it. So the whole log is read, with `from` and `to`
too, which may take a while; without them all windows are compared, and quarantine.

### When a task is red

- `ask`: the times or the pipeline are invalid, or a part does not answer; the error in the log says which.
- `audit`: either the Spark application failed: fix what the last lines of the log name, then clear the task. Or the
  sides differ, and the log lists windows, counts and the first IDs. If only the aggregates differ, run `repair_on_call`
  with `force`. A record that Kafka has and raw has not is one that raw has lost: read it again with `onceover reread`
  before the topic expires, see docs/maintenance.md#raw-that-lost-lines.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_dag
from onceover_airflow.operators.audit import AskAuditOperator, AuditOperator

FORM = {
    "pipeline": params.one_pipeline(params.known_pipelines()),
    "from": params.optional_bound("From", "Start of the first window; empty for all."),
    "to": params.optional_bound("To", "End of the last window, exclusive; empty for all."),
}


@dag(schedule=None, **describe_dag(__doc__, "audit", params=FORM))
def audit_against_log() -> None:
    ask = AskAuditOperator(task_id="ask", pipeline="{{ params.pipeline }}")
    AuditOperator(task_id="audit", pipeline="{{ params.pipeline }}", audit_id=ask.output)


audit_against_log()
