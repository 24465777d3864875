"""Whether an earlier run of the same DAG is still to repair a pipeline's windows, by the word of Airflow."""

from __future__ import annotations

from collections.abc import Callable

from airflow.sdk import Context

from onceover.model.dag_run import DagRun

_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
REPAIR = "windows.repair"


def make_run_check(context: Context) -> Callable[[DagRun], bool]:
    """Return a function that says whether a run's repair of this task's pipeline has not ended yet.

    The pipelines are mapped in the order of their names, so the repair has this task's map index there; after a
    pipeline was added or removed, a wrong answer costs one repair that finds nothing to do, or a run of patience. A run
    that was deleted has ended."""
    task = context["ti"]

    def still_runs(run: DagRun) -> bool:
        states = task.get_task_states(
            dag_id=run.dag_id, map_index=task.map_index, task_ids=[REPAIR], run_ids=[run.run_id]
        )
        return any(state not in _ENDED for of_run in states.values() for state in of_run.values())

    return still_runs
