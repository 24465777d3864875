"""Every 5 minutes: tell other DAGs which windows were published, by an event of the pipeline's asset.

The asset of a pipeline is `aggregates.PIPELINE`. Its event's extra lists under `published` each request that gave
windows new rows: repaired by a DAG or from a shell, or restored. A request names who and why, and its windows with
start, end, revision, and the records counted before and after. Each window is announced at least once, a rare time
twice: its revision tells.

Schedule your own DAG on `pipeline_asset("PIPELINE")` of `onceover_airflow.assets`, or on `PUBLISHED` for every
pipeline; `example_downstream` shows it.

### When a task is red

- `announce`: the ledger does not answer; run `onceover doctor`. Nothing is lost: the next run announces all of it.
- `mark`: as `announce`; the next run announces the same windows once more.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow.dag_parts import describe_schedule
from onceover_airflow.operators.announce import AnnounceOperator, MarkAnnouncedOperator


@dag(schedule="4-59/5 * * * *", **describe_schedule(__doc__, "asset"))  # before the next detection
def announce_published() -> None:
    AnnounceOperator(task_id="announce") >> MarkAnnouncedOperator(task_id="mark")


announce_published()
