"""The announcement of changed days as two tasks: one whose success makes the assets' events, one that marks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover_airflow.assets import DUE_ALIAS, add_day, announce_soon, pipeline_asset


class AnnounceOperator(BaseOperator):
    """Adds an event to the asset of a pipeline for each day of which windows have other rows now: repaired by a DAG or
    a command, restored, or certified again with late records. The event's key is the day; its extra lists what was
    `published`, a request each: its windows with their revisions and certificates, who and why. Skips if there is
    nothing new."""

    def __init__(self, *, pipelines: Sequence[str], **kwargs: Any) -> None:
        super().__init__(outlets=list(map(pipeline_asset, pipelines)), **kwargs)
        self.pipelines = pipelines

    def execute(self, context: Context) -> dict[str, list[str]]:
        from onceover.context import open_ledger
        from onceover.observability.announce import collect_announcements

        with open_ledger("announce") as ledger:
            announcements = collect_announcements(ledger, context["dag_run"].run_id, self.pipelines)
        if not announcements:
            raise AirflowSkipException("no window was published since the last announcement")
        days: dict[str, list[str]] = {}
        for each in announcements:
            add_day(context, each["pipeline"], each["day"], {"published": each["published"]})
            days.setdefault(each["pipeline"], []).append(each["day"])
        # An outlet without an event of its own gets one without a key.
        self.outlets = list(map(pipeline_asset, days))
        for pipeline, announced in days.items():
            self.log.info("%s: announced %s", pipeline, ", ".join(announced))
        return days


class MarkAnnouncedOperator(BaseOperator):
    """Marks what the run announced, once Airflow has the events: what a run fails to mark is announced again. Another
    run follows at once if more is due."""

    def __init__(self, *, pipelines: Sequence[str], **kwargs: Any) -> None:
        super().__init__(outlets=[DUE_ALIAS], **kwargs)
        self.pipelines = pipelines

    def execute(self, context: Context) -> int:
        from onceover.context import open_ledger
        from onceover.ledger.announcements import mark_announced

        with open_ledger("announce") as ledger:
            marked = mark_announced(ledger, context["dag_run"].run_id)
            announce_soon(context, ledger, self.pipelines)
        return marked
