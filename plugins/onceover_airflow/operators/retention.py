"""The daily retention as a task: what is older than its pipeline keeps it is listed, let go, and moved away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from onceover.model.json_text import to_plain
from onceover.model.window import format_moment
from onceover_airflow.run_request import Asked, chosen_name
from onceover_airflow.tables import XCOM_ROWS, format_table
from onceover_airflow.who import who_asked

if TYPE_CHECKING:
    from onceover.retention.service import ExpiryDue


class ExpireOperator(BaseOperator):
    """Does what `onceover retention` does, and says what went. Nothing for a pipeline that keeps raw for ever, or that
    has not run yet; a dry run only lists.

    Green also if an ingest that runs has still to move files away: it goes on between its batches, without this.
    """

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self._said = ""

    def execute(self, context: Context) -> dict[str, Any] | None:
        from onceover.context import open_pipeline
        from onceover.retention import service as retention_service

        with open_pipeline(chosen_name(self.pipeline), "retention") as opened:
            name = opened.name
            if opened.pipeline.storage.retention_ms is None:
                self.log.info("%s keeps raw for ever: its TOML has no `retention` under [storage]", name)
                return None
            if not opened.is_registered():
                self.log.info("%s has not run yet", name)
                return None
            asked, run = Asked.of_form(context["params"]), context["dag_run"]
            who, why = who_asked(run), asked.reason or f"{run.dag_id}, run {run.run_id}"
            listed = retention_service.plan_expiry(opened)
            what = "dry run, nothing is written" if asked.dry_run else "goes"
            self.log.info("%s, %s, for %s, because: %s\n%s", name, what, who, why, _files(listed))
            if asked.dry_run:
                return {**to_plain(listed), "dry_run": True}
            went = retention_service.expire(opened, listed, who, why, self._say)
        result = {**to_plain(listed), "let_go": went.expired, "left": went.left, "who": who, "why": why}
        self.log.info("%s: %s files let go", name, f"{went.expired:,}")
        if went.left:
            self.log.warning("the ingest that runs has %s files still to move away", f"{went.left:,}")
        return result

    def _say(self, text: str) -> None:
        if text != self._said:  # while it waits it would say the same five times a second
            self._said = text
            self.log.info("%s", text)


def _files(listed: ExpiryDue) -> str:
    rows = [
        {
            "raw of": format_moment(one.window_start) if one.window_start else f"quarantine {one.quarantine_day}",
            "records": one.records,
            "bytes": one.bytes,
            "last landed": format_moment(one.landed_at.replace(microsecond=0)),
        }
        for one in listed.files[:XCOM_ROWS]
    ]
    more = f"\nand {len(listed.files) - XCOM_ROWS:,} more" if len(listed.files) > XCOM_ROWS else ""
    kept = f"\n{listed.kept_back:,} windows as old stay: not certified, blocked, or held by a repair"
    return format_table(rows) + more + (kept if listed.kept_back else "")
