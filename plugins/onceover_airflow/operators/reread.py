"""The reread of one window's raw from Kafka as a task; the tasks of a repair follow it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from onceover.errors import TerminalError
from onceover.model.window import format_moment
from onceover_airflow.operators.repair import name_bounds
from onceover_airflow.page_links import RunLink, link_window
from onceover_airflow.requester import name_requester
from onceover_airflow.run_request import chosen_name, require_reason, require_text
from onceover_airflow.spark_job import SparkJobOperator


class RereadOperator(SparkJobOperator):
    """Runs jobs/reread.py: finds what raw of the form's window has lost, and asks that Kafka is read again for it, as
    `onceover reread`. Returns the request of the window's repair and the range; red if Kafka holds none of it."""

    job = "reread"
    is_brief = True
    operator_extra_links = (RunLink(),)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        from onceover.detection.future_range import resolve_window
        from onceover.ledger.repair_requests import find_run_requests

        params, run, name = context["params"], context["dag_run"], chosen_name(self.pipeline)
        reason = require_reason(params, "a reread")
        with self.open("reread") as opened:
            window = resolve_window(opened, require_text(params, "window"))
            before = len(find_run_requests(opened.ledger, run.dag_id, run.run_id))
        # A run's ID may begin with a hyphen, as an option does.
        kept = {"who": name_requester(run), "why": reason, "dag": run.dag_id, "run": run.run_id}
        self.set_command("window", window, *(f"--{option}={value}" for option, value in kept.items()))
        super().execute(context)
        with self.open("reread") as opened:
            requests = find_run_requests(opened.ledger, run.dag_id, run.run_id)
        if len(requests) == before:
            raise TerminalError(
                f"{name}: what raw of window {window.shown} lacks is in neither place, raw or Kafka; bring the window "
                f"file back from a backup, and repair the window{link_window(name, format_moment(window.start))}"
            )
        return {"pipeline": name, "request_id": requests[-1]["request_id"], **name_bounds(window)}
