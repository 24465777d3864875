"""The days that a backfill may choose from, without a schedule that takes them away."""

from __future__ import annotations

from typing import Any

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import instance

from onceover_airflow.backfill_days import name_first_day, name_last_day


class BackfilledDays(CronDataIntervalTimetable):
    """Days in UTC, of which no schedule makes a run. Airflow offers backfills only for DAGs with a timetable, and the
    form skips each day that has a run: one of a schedule, even an idle one, would keep a backfill from that day.

    A backfill's range is widened to whole days, see `backfill_days`: by itself, Airflow runs no day whose midnight lies
    outside of it, and says nothing. A DAG needs `catchup=False` with it: that is how Airflow's scheduler asks for the
    next run, and no backfill does.
    """

    def __init__(self) -> None:
        super().__init__("0 0 * * *", timezone="UTC")

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> BackfilledDays:
        return cls()

    def serialize(self) -> dict[str, Any]:
        return {}

    @property
    def summary(self) -> str:
        """Say in the list of DAGs that only a person starts runs."""
        return "backfills by hand"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if not restriction.catchup:
            return None
        first, last = restriction.earliest, restriction.latest
        days = restriction._replace(
            earliest=first and instance(name_first_day(first)), latest=last and instance(name_last_day(last))
        )
        return super().next_dagrun_info(last_automated_data_interval=last_automated_data_interval, restriction=days)
