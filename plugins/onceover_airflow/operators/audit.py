"""The audit against the log as two tasks: one records the request, one runs Spark and turns red on a difference; and
the daily proof of one window as one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.errors import TerminalError
from onceover.explain.local_times import add_local, format_window
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.requester import name_requester
from onceover_airflow.run_request import choose_range, chosen_name
from onceover_airflow.spark_job import SparkJobOperator
from onceover_airflow.tables import format_table, shorten


class AskAuditOperator(PipelineOperator):
    """Records the request for an audit of the form's range, or of everything that the log still holds. Returns the
    audit's id; skips a pipeline that has not run yet."""

    def execute(self, context: Context) -> int:
        from onceover.audit import service as audit_service
        from onceover.detection.future_range import reject_future_range

        run, params = context["dag_run"], context["params"]
        start = end = None
        with self.open("audit") as opened:
            if params.get("from") or params.get("to"):
                chosen = reject_future_range(opened, choose_range(params, opened.windowing))
                start, end = chosen.start, chosen.end
            audit_id = audit_service.request_audit(opened, "log", start=start, end=end, who=name_requester(run))
        if audit_id is None:
            raise AirflowSkipException(f"pipeline {opened.name} has not run yet, so there is nothing to audit")
        return audit_id


class AuditOperator(SparkJobOperator):
    """Runs jobs/audit.py. Returns the counts of the result; red if Kafka, raw and the aggregates differ."""

    job = "audit"
    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "audit_id")

    def __init__(self, *, audit_id: object, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.audit_id = audit_id

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        from onceover.audit import service as audit_service

        audit_id = int(str(self.audit_id))
        self.set_command("audit", audit_id)
        super().execute(context)
        with self.open("audit") as opened:
            windowing = opened.windowing
            result = dict(audit_service.require_result(opened, audit_id))
        differing = add_local(windowing, (row for row in result["rows"] if not row["equal"]))
        counts = {name: result[name] for name in ("windows", "differing", "offsets", "records", "unaccounted")}
        self.log.info("Kafka, raw and aggregates of %s:\n%s", self.pipeline, format_table([counts]))
        if differing:
            sides = ("held", "kafka", "raw", "raw_lines", "unaccounted", "aggregates", "rows_differing")
            shown = [
                {"window": format_window(row), **{side: row[side] for side in sides}, "ids": _ids(row)}
                for row in differing
            ]
            self.log.warning("differing windows:\n%s", format_table(shown))
            raise TerminalError(
                f"{self.pipeline}: {result['differing']} of {result['windows']} windows differ, the first is "
                f"{format_window(differing[0])}; the log lists them, and the whole result is in the ledger: SELECT "
                f"detail -> 'result' FROM onceover.action WHERE action_id = {audit_id}"
            )
        return shorten({"pipeline": self.pipeline, "audit_id": audit_id, **counts})


class VerifyOperator(SparkJobOperator):
    """Runs jobs/audit.py for one certified window, at random, whose values it evaluates again; the same one if the task
    is cleared. Returns the result; red if the window differs from its certificate. Skips a pipeline without a certified
    window that is small enough."""

    job = "audit"

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        from onceover.audit import service as audit_service
        from onceover.model.window import format_moment

        name, run = chosen_name(self.pipeline), context["dag_run"]
        with self.open("verify") as opened:
            audit_id = audit_service.request_sample(opened, str(run.run_id), name_requester(run))
            if audit_id is None:
                raise AirflowSkipException(f"pipeline {name} has no certified window to verify, or none that is small")
            self.set_command("audit", audit_id)
            super().execute(context)
            start, result = audit_service.read_sample(opened, audit_id)
            shown = opened.windowing.show(start)
        window = format_moment(start)
        if not result["equal"]:
            raise TerminalError(
                f"{name}: window {shown} is not as certified: {'; '.join(result['differences'])}; see "
                f"`onceover verify {name} {window}`"
            )
        sides = {side: result[side]["records"] for side in ("certificate", "raw", "aggregates")}
        self.log.info("%s:\n%s", name, format_table([{"window": shown, **sides}]))
        return shorten({"pipeline": name, "window": window, "audit_id": audit_id, **sides})


def _ids(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{ids['count']} {kind}: {', '.join(ids['first'][:3])}" for kind, ids in row["ids"].items())
