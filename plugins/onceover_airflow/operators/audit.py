"""An audit against the log as tasks: asked for, carried out by Spark, and red where something differs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.errors import TerminalError
from onceover_airflow.run_request import Asked, chosen_name
from onceover_airflow.spark_job import SparkJobOperator
from onceover_airflow.tables import format_table, shortened
from onceover_airflow.who import who_asked
from onceover_airflow.windows import DataInterval


class AskAuditOperator(BaseOperator):
    """Writes the audit down: of the range that the form names, or of everything that the log still holds. Returns its
    id; skips a pipeline that has not run yet."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        kwargs.setdefault("execution_timeout", timedelta(minutes=10))
        super().__init__(map_index_template="{{ task.pipeline }}", **kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> int:
        from onceover.audit import service as audit_service
        from onceover.context import open_pipeline
        from onceover.detection.future_range import reject_future_range

        run, params = context["dag_run"], context["params"]
        start = end = None
        with open_pipeline(chosen_name(self.pipeline), "audit") as opened:
            if params.get("from") or params.get("to"):
                minutes = opened.pipeline.contract.window_minutes
                asked = Asked.of_run(params, DataInterval(None, None), minutes=minutes, reason_needed=False)
                if asked.window_range is not None:
                    reject_future_range(opened, asked.window_range)
                    start, end = asked.window_range.start, asked.window_range.end
            audit_id = audit_service.request_audit(opened, "log", start=start, end=end, who=who_asked(run))
        if audit_id is None:
            raise AirflowSkipException(f"pipeline {opened.name} has not run yet")
        return audit_id


class AuditOperator(SparkJobOperator):
    """Runs jobs/audit.py. Returns a short form of the result; red if the sides differ."""

    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "audit_id")

    def __init__(self, *, pipeline: str, audit_id: object, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, job="audit", **kwargs)
        self.audit_id = audit_id

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        from onceover.audit import service as audit_service
        from onceover.context import open_pipeline

        audit_id = int(str(self.audit_id))
        self.arguments("audit", audit_id)
        super().execute(context)
        with open_pipeline(chosen_name(self.pipeline), "audit") as opened:
            found = dict(audit_service.require_result(opened, audit_id))
        differing = [row for row in found["rows"] if not row["equal"]]
        counts = {name: found[name] for name in ("windows", "differing", "offsets", "records")}
        self.log.info("Kafka, raw and aggregates of %s:\n%s", self.pipeline, format_table([counts]))
        if differing:
            sides = ("window", "kafka", "raw", "raw_lines", "aggregates", "rows_differing")
            shown = [{**{side: row[side] for side in sides}, "ids": _ids(row)} for row in differing]
            self.log.warning("what differs:\n%s", format_table(shown))
            raise TerminalError(
                f"{self.pipeline}: {found['differing']} of {found['windows']} windows differ, the first is "
                f"{differing[0]['window']}; see all of it with SELECT result FROM onceover.audit WHERE audit_id = "
                f"{audit_id}"
            )
        return shortened({"pipeline": self.pipeline, "audit_id": audit_id, **counts})


def _ids(row: dict[str, Any]) -> str:
    return "; ".join(f"{ids['count']} {kind}: {', '.join(ids['first'][:3])}" for kind, ids in row["ids"].items())
