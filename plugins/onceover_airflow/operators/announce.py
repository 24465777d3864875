"""The announcement of published windows as two tasks: one whose success is the asset's event, one that marks them."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.model.wording import pluralize
from onceover_airflow.assets import PUBLISHED, pipeline_asset


class AnnounceOperator(BaseOperator):
    """Adds an event to the asset of each pipeline of which windows were published: by a DAG, a command or a restore.
    The event's extra lists what was `published`, a request each: its windows with their revisions, who and why. Skips
    if there is nothing new."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(outlets=[PUBLISHED], **kwargs)

    def execute(self, context: Context) -> dict[str, int]:
        from onceover.context import open_ledger
        from onceover.observability.announce import collect_announcements

        with open_ledger("announce") as ledger:
            announcements = collect_announcements(ledger, context["dag_run"].run_id)
        if not announcements:
            raise AirflowSkipException("no window was published since the last announcement")
        windows: dict[str, int] = {}
        # Of several events that a task adds to one asset through an alias, Airflow keeps the first.
        for pipeline, group in groupby(announcements, key=itemgetter("pipeline")):
            published: Any = list(group)
            context["outlet_events"][PUBLISHED].add(pipeline_asset(pipeline), extra={"published": published})
            windows[pipeline] = sum(len(each["windows"]) for each in published)
        for pipeline, count in windows.items():
            self.log.info("%s: %s announced", pipeline, pluralize(count, "published window"))
        return windows


class MarkAnnouncedOperator(BaseOperator):
    """Marks what the run announced, once Airflow has the events: what a run fails to mark is announced again."""

    def execute(self, context: Context) -> int:
        from onceover.context import open_ledger
        from onceover.ledger.repair_tries import mark_announced

        with open_ledger("announce") as ledger:
            return mark_announced(ledger, context["dag_run"].run_id)
