"""The daily retention as tasks: files older than their pipeline's retention expire, and the ledger's old batches are
joined."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from onceover.explain.local_times import name_source
from onceover.model.json_text import to_plain
from onceover.model.window import format_second
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.requester import name_requester
from onceover_airflow.run_request import read_flag, read_reason
from onceover_airflow.tables import XCOM_ROWS, format_table

if TYPE_CHECKING:
    from onceover.model.windowing import Windowing
    from onceover.retention.expire import ExpiryDue


class ExpireOperator(PipelineOperator):
    """Does what `onceover retention` does and logs the expired files. Skips a pipeline that keeps raw for ever or has
    not run yet; a dry run only lists.

    Green even if a running ingest has still to move files away: ingest continues between its batches by itself.
    """

    _last_progress = ""

    def execute(self, context: Context) -> dict[str, Any] | None:
        from onceover.explain.actions import describe_expiry
        from onceover.retention import expire as expiring

        params, run = context["params"], context["dag_run"]  # read before any skip: a wrong conf is red
        dry_run = read_flag(params, "dry_run")
        who, why = name_requester(run), read_reason(params) or f"{run.dag_id}, run {run.run_id}"
        with self.open("retention") as opened:
            name = opened.name
            if opened.pipeline.storage.retention_ms is None:
                self.log.info("%s keeps raw for ever: its TOML has no `retention` under [storage]", name)
                return None
            if not opened.is_registered():
                self.log.info("%s has not run yet, so there is nothing to expire", name)
                return None
            listed = expiring.plan_expiry(opened)
            what = "dry run, nothing is written; would expire" if dry_run else "expiring"
            self.log.info("%s: %s, for %s, because: %s\n%s", name, what, who, why, _files(listed, opened.windowing))
            if dry_run:
                self.log.info("%s: %s", name, "; ".join(describe_expiry(listed, None)))
                return {**to_plain(listed), "dry_run": True}
            expired = expiring.expire(opened, listed, who, why, self._log_progress)
        result = {**to_plain(listed), "expired": expired.expired, "left": expired.left, "who": who, "why": why}
        self.log.info("%s: %s", name, "; ".join(describe_expiry(listed, expired)))
        return result

    def _log_progress(self, text: str) -> None:
        if text != self._last_progress:  # a wait repeats its text five times a second
            self._last_progress = text
            self.log.info("%s", text)


class RollUpOperator(PipelineOperator):
    """Does what `onceover ledger roll-up` does. Skips a pipeline that has not run yet; a dry run only counts."""

    def execute(self, context: Context) -> dict[str, Any] | None:
        from onceover.explain.actions import describe_rollup
        from onceover.retention.rollup import roll_up_batches

        dry_run = read_flag(context["params"], "dry_run")
        with self.open("roll-up") as opened:
            if not opened.is_registered():
                self.log.info("%s has not run yet, so the ledger has no batches of it", opened.name)
                return None
            result = roll_up_batches(opened, dry_run=dry_run)
        self.log.info("%s: %s", result.pipeline, describe_rollup(result, dry_run=dry_run))
        return {**asdict(result), "dry_run": dry_run}


def _files(listed: ExpiryDue, windowing: Windowing) -> str:
    rows = [
        {
            "raw of": name_source(windowing, file),
            "records": file.records,
            "bytes": file.bytes,
            "last landed": format_second(file.landed_at),
        }
        for file in listed.files[:XCOM_ROWS]
    ]
    more = f"\nand {len(listed.files) - XCOM_ROWS:,} more" if len(listed.files) > XCOM_ROWS else ""
    return format_table(rows) + more
