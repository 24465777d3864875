"""The restatement of a range as a task: a preview by Spark, then the fact and the request of its repair."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from onceover.errors import TerminalError, UsageError
from onceover.explain.local_times import add_local_in, format_window
from onceover.model.dag_run import DagRun
from onceover.model.json_text import to_plain
from onceover_airflow.operators.repair import name_bounds
from onceover_airflow.page_links import RunLink
from onceover_airflow.requester import name_requester
from onceover_airflow.run_request import RunRequest, chosen_name
from onceover_airflow.spark_job import SparkJobOperator
from onceover_airflow.tables import format_table, shorten
from onceover_airflow.windows import NO_INTERVAL


class RestateOperator(SparkJobOperator):
    """Evaluates the windows of the form's range under the contract in force, as `onceover restate`, and logs the rows
    that differ. Returns the request of their repair and the range; of a dry run the token, and no request. Red if the
    contract dates a record otherwise, or quarantines one: nothing was changed then. With a `plan`, Spark does not
    evaluate them again."""

    job = "audit"
    operator_extra_links = (RunLink(),)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        from onceover.audit import service as audit_service
        from onceover.detection.detect import detect
        from onceover.detection.future_range import cut_future_range
        from onceover.repair.restate import is_restated, restate_range

        run, name = context["dag_run"], chosen_name(self.pipeline)
        with self.open("restate") as opened:
            windowing = opened.windowing
            request = RunRequest.from_run(context["params"], NO_INTERVAL, windowing=windowing, reason_needed=True)
            if request.window_range is None:
                raise TerminalError("a restatement needs a range of windows; give 'from' and 'to'")
            chosen, token = cut_future_range(opened, request.window_range), request.plan
            if request.dry_run and token is not None:
                raise UsageError("a dry run takes no 'plan': it logs the token for one")
            is_left = not request.dry_run and token is None and is_restated(opened.require_same_contract(), chosen)
            audit_id = None
            if token is None and not is_left:
                audit_id = audit_service.request_preview(opened, chosen, name_requester(run))
        if audit_id is not None:
            self.set_command("audit", audit_id)
            super().execute(context)
        with self.open("restate") as opened:
            if audit_id is not None:
                result = audit_service.require_result(opened, audit_id)
                token = self._log_preview(name, add_local_in(windowing, result, "rows", "refused"))
            if request.dry_run:
                return {"pipeline": name, "dry_run": True, "request_id": None, "token": token}
            who, why = name_requester(run), request.reason or ""
            if token is not None:
                restate_range(opened, opened.require_same_contract(), chosen, who, why, token)
            dag_run = DagRun(run.dag_id, run.run_id)
            detection = to_plain(detect(opened, who=who, why=why, window_range=chosen, dag_run=dag_run))
        return shorten(detection | name_bounds(chosen))

    def _log_preview(self, name: str, result: dict[str, Any]) -> str:
        """Log a preview, and return its token. Raise TerminalError if it refuses windows."""
        shown = [{"window": format_window(each), **row} for each in result["rows"] for row in each["rows"]]
        counts = {key: result[key] for key in ("contract_version", "windows", "changing")}
        self.log.info("%s:\n%s", name, format_table([counts]))
        self.log.info("rows that change:\n%s", format_table(shown))
        if result["token"] is None:
            first = result["refused"][0]
            raise TerminalError(
                f"{name}: {result['refused_windows']} windows cannot be restated, and nothing was changed; the first "
                f"is {format_window(first)}: {first['refused']} {', '.join(first['examples'])}"
            )
        self.log.info("to restate exactly this, give this token as 'plan': %s", result["token"])
        return str(result["token"])
