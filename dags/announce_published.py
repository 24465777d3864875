"""When windows have other rows, and every 5 minutes: tell other DAGs which days, by events of the pipelines' assets.

The asset of a pipeline is `aggregates.PIPELINE`. Each event is of one day, in UTC or the windows' zone, its
partition key. Its extra lists under `published` each request that gave windows of the day new rows: repaired by a DAG
or from a shell, restored, or late records that were certified without a repair. A request names who and why, and its
windows with start, end, revision, certificate and verdict, and the records counted before and after. Each window is
announced at least once, a rare time twice: revision and certificate tell.

The tasks that repair, restore or certify start a run at once; the schedule announces what a shell or ingest published.
A day waits while repairs of it are planned or under way, for at most an hour, so that it is announced once.

Schedule your own DAG by `repaired_days("PIPELINE")` of `onceover_airflow.assets`; `example_downstream` shows it.

### When a task is red

- `announce`: the ledger does not answer; run `onceover doctor`. Or a pipeline's TOML is so new that Airflow does not
  know its asset, which a minute cures. Nothing is lost: the next run announces all of it.
- `mark`: as `announce`; the next run announces the same windows once more.
"""

from __future__ import annotations

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag

from onceover_airflow.assets import DUE
from onceover_airflow.dag_parts import describe_schedule
from onceover_airflow.operators.announce import AnnounceOperator, MarkAnnouncedOperator
from onceover_airflow.params import known_pipelines

# Before the next detection.
SCHEDULE = AssetOrTimeSchedule(timetable=CronTriggerTimetable("4-59/5 * * * *", timezone="UTC"), assets=[DUE])


@dag(schedule=SCHEDULE, **describe_schedule(__doc__, "asset"))
def announce_published() -> None:
    known = known_pipelines()
    announce = AnnounceOperator(task_id="announce", pipelines=known)
    announce >> MarkAnnouncedOperator(task_id="mark", pipelines=known)


announce_published()
