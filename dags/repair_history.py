"""Judge every window of a day again and repair those that are not certified: for the **Backfill** form of the UI.

Choose *Trigger*, then *Backfill*, the first and the last day (both included; a day is run once it is over, so not
today), and the pipeline. Each day is one run, with at most one Spark application a pipeline, and none if nothing is
wrong. `force` rebuilds certified windows too.

Days are days in UTC. A browser in another time zone asks for days of that zone, and each of them is a part of two days
in UTC: both are run, so one day more than the form shows.

No schedule makes runs of this DAG: `repair_failed_windows` already looks at every window. A day that was run by an
earlier backfill, or by the idle schedule of an early version of this DAG, is run again if you choose to reprocess
completed runs; the ledger names who chose so. The pipeline is filled in only if there is just one; otherwise it has to
be chosen. An empty choice never means all pipelines.

### When a task is red

- `choose`: no pipeline was chosen, or an unknown one. Start the backfill again with one from the list.
- `days`: the backfill asked for days that have no run, and the error names them: they were not over yet, in UTC, or
  another run of them was going on. All that this run is for is done. Start a backfill of those days later.
- `windows.detect`: a part does not answer, or the day lies in the future; the error in the log says which. Run
  `onceover doctor`, then clear the task.
- `windows.needed`: the detection left no result. Clear `windows.detect` and the tasks after it.
- `windows.repair`: the Spark application failed. Fix what the last lines of the log name, then clear the task: running
  it twice is harmless.
- `windows.confirm`: the published rows cannot be read back; the error in the log says why. Clear the task.
- `windows.check`: windows of the range are neither confirmed nor in need of nothing, and the log lists them with their
  reasons. Run `onceover explain PIPELINE WINDOW`, as the message says. While another repair holds some, the task waits
  for five minutes; after that, clear it when the other repair has ended.

After cancelling a backfill, delete its runs and make a new one: a cleared run of a cancelled backfill stays queued.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import dag, get_current_context, task

from onceover_airflow import params
from onceover_airflow.backfill_days import require_all_days
from onceover_airflow.dag_parts import describe_dag
from onceover_airflow.tables import with_findings
from onceover_airflow.task_group import BACKFILL, repair_steps
from onceover_airflow.timetables import BackfilledDays


@task
def choose() -> list[str]:
    """Return the names of the pipelines that this run repairs."""
    return params.chosen_pipelines(get_current_context()["params"].get("pipeline"), params.known_pipelines())


@task
def days() -> None:
    """Turn the backfill's last run red if Airflow left out days that were asked for. All others are done all the
    same."""
    require_all_days(get_current_context()["dag_run"].conf or {})


FORM = {
    "pipeline": params.pipelines(params.known_pipelines()),
    "reason": params.reason("Recorded with each repair. Without a reason, the run's id is recorded."),
    "force": params.force(),
}


@dag(
    schedule=BackfilledDays(),
    start_date=datetime(1970, 1, 1, tzinfo=UTC),  # Airflow runs no task of an earlier day, and its run never ends
    catchup=False,  # see BackfilledDays
    **describe_dag(with_findings(__doc__), "repair", "backfill", params=FORM),
)
def repair_history() -> None:
    days()
    repair_steps(scope="run", priority=BACKFILL).expand(pipeline=choose())


repair_history()
