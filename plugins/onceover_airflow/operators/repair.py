"""The three tasks of every repair: detect, repair in one Spark application, confirm by reading back.

The tasks hold no logic about windows. The rooms' services decide; a task passes in who asked and logs the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.errors import BusyError, TerminalError
from onceover.explain.plan import describe_plan
from onceover.model.dag_run import DagRun
from onceover.model.json_text import to_plain
from onceover.model.window import Window, WindowRange, format_moment
from onceover_airflow.assets import DUE_ALIAS, announce_soon
from onceover_airflow.metrics import count
from onceover_airflow.page_links import RunLink, link_window
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.requester import name_requester
from onceover_airflow.run_check import make_run_check
from onceover_airflow.run_request import RunRequest, chosen_name
from onceover_airflow.spark_job import SparkJobOperator
from onceover_airflow.tables import evidence_table, format_table, shorten
from onceover_airflow.windows import DataInterval

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from onceover.detection.plan import RepairPlan

Scope = Literal["ledger", "run"]
"""`ledger`: every window in the ledger that is not certified. `run`: the windows that this run requests."""


class DetectOperator(PipelineOperator):
    """Judges windows, certifies the right ones from the ledger, and requests a repair of the failed ones.

    Returns the detection as a dictionary; its `request_id` is None when there is nothing to repair. A dry run writes
    nothing and returns `plan`, one row a window.
    """

    operator_extra_links = (RunLink(),)

    def __init__(self, *, scope: Scope, reason_needed: bool = False, **kwargs: Any) -> None:
        super().__init__(outlets=[DUE_ALIAS], **kwargs)
        self.scope = scope
        self.reason_needed = reason_needed

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.detection import detect as detecting
        from onceover.detection.future_range import cut_future_range
        from onceover.detection.plan import plan_repair

        run, request = context["dag_run"], RunRequest()
        with self.open("detect") as opened:
            if self.scope == "run":
                request = RunRequest.from_run(
                    context["params"],
                    DataInterval(run.data_interval_start, run.data_interval_end),
                    windowing=opened.windowing,
                    reason_needed=self.reason_needed,
                )
            if request.window_range is not None:
                request = self._cut(request, cut_future_range(opened, request.window_range))
            if request.dry_run and request.window_range is not None:
                return self._log_plan(plan_repair(opened, window_range=request.window_range, force=request.force))
            detection = detecting.detect(
                opened,
                who=name_requester(run),
                why=request.reason or f"{run.dag_id}, run {run.run_id}",
                window_range=request.window_range,
                force=request.force,
                dag_run=DagRun(run.dag_id, run.run_id),
                plan_token=request.plan,
                still_runs=make_run_check(context) if self.scope == "ledger" else None,
            )
            announce_soon(context, opened.ledger, [opened.name])  # late records, which need no repair
        logged = self._log_detection(opened.name, to_plain(detection))
        return logged | (name_bounds(request.window_range) if request.window_range else {})

    def _cut(self, request: RunRequest, chosen: WindowRange) -> RunRequest:
        if chosen != request.window_range:
            self.log.warning("the range ends in the future: it is judged up to %s", format_moment(chosen.end))
        return replace(request, window_range=chosen)

    def _log_plan(self, plan: RepairPlan) -> dict[str, Any]:
        name, rows = plan.pipeline, list[dict[str, Any]](to_plain(plan.windows))
        shown = [{**row, "findings": [finding["kind"] for finding in row["findings"]]} for row in rows]
        self.log.info("dry run, nothing was written; a repair of %s would do this:\n%s", name, format_table(shown))
        for sentence in describe_plan(plan.totals, plan.changing):
            self.log.info("%s", sentence)
        self.log.info("to repair exactly this, give this token as 'plan': %s", plan.token)
        of_plan = {"windows": len(rows), "plan": rows, "token": plan.token, "changing": plan.changing}
        return shorten({"pipeline": name, "dry_run": True, "request_id": None, **of_plan})

    def _log_detection(self, name: str, detection: dict[str, Any]) -> dict[str, Any]:
        counts = {key: value for key, value in detection.items() if isinstance(value, int) and key != "request_id"}
        self.log.info("%s:\n%s", name, format_table([{"failed": len(detection["failed"]), **counts}]))
        if detection["failed"]:
            self.log.info("failed windows, with their evidence:\n%s", evidence_table(detection["failed"]))
        if detection["queued"] is not None:
            self.log.info("request %d of an earlier run comes first: nothing further is requested", detection["queued"])
        if detection["findings"]:
            self.log.warning(
                "windows wait for the pipeline, which has these findings of its own:\n%s",
                evidence_table([{"window": "-", "findings": detection["findings"]}]),
            )
        return shorten(detection)


class _FollowingOperator(PipelineOperator):
    """A task after a detection, whose result it gets."""

    template_fields: Sequence[str] = ("pipeline", "detection")

    def __init__(self, *, detection: object, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.detection = detection

    def _require_request(self) -> int:
        """Return the request's ID. Skips the task if nothing was requested."""
        if (request := parse_request_id(self.detection)) is None:
            raise AirflowSkipException(f"no repair of {self.pipeline} was requested")
        return request


class NeededOperator(_FollowingOperator):
    """Skips the repair, and with it the wait for Spark's pool, when nothing was requested."""

    def execute(self, context: Context) -> None:
        self._require_request()


class RepairOperator(_FollowingOperator, SparkJobOperator):
    """Runs jobs/repair.py for one request: one Spark application for all its windows. Skips when there is no request.

    A second run of the same request finds nothing to do.
    """

    job = "repair"
    is_brief = True
    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "detection")
    operator_extra_links = (RunLink(),)

    def execute(self, context: Context) -> None:
        self.set_command("request", self._require_request())
        super().execute(context)

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return the lineage of what was published; OpenLineage's provider calls this after success and failure."""
        from onceover_airflow.lineage import lineage_facets

        return lineage_facets(chosen_name(self.pipeline), parse_request_id(self.detection))


class ConfirmOperator(_FollowingOperator):
    """Re-reads the windows that a request published. Red only if some are newly blocked, or revoked as they differ; for
    a requested range, that is left to CheckRangeOperator."""

    operator_extra_links = (RunLink(),)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(outlets=[DUE_ALIAS], **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.repair import confirmation

        request = self._require_request()
        with self.open("confirm") as opened:
            done = confirmation.confirm(opened, request)
            announce_soon(context, opened.ledger, [opened.name])
        count(done)
        result: dict[str, Any] = to_plain(done)
        counts = {key: len(value) if isinstance(value, list) else value for key, value in result.items()}
        self.log.info("confirmed by reading back:\n%s", format_table([counts]))
        for state in ("failed", "newly_blocked", "revoked"):
            if rows := [{"window": window, "reason": reason} for window, reason in result[state]]:
                self.log.warning("%s:\n%s", state.replace("_", " "), format_table(rows))
        if read_range(self.detection) is None and (
            worse := describe_worse(self.pipeline, done.revoked, done.newly_blocked)
        ):
            raise TerminalError(worse)
        return shorten(result)


class CheckRangeOperator(_FollowingOperator):
    """Turns red unless each closed window of the run's range is confirmed, or needed nothing; names the others.

    Raises BusyError, which is retried, while another repair holds some of them, or they are to be judged again."""

    operator_extra_links = (RunLink(),)

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.repair import confirmation, range_outcome

        request, bounds = parse_request_id(self.detection), read_range(self.detection)
        if bounds is None:
            raise AirflowSkipException(f"nothing was repaired in {self.pipeline}: it was a dry run")
        with self.open("check") as opened:
            requested = opened.windowing.parse_range(*bounds)
            done = None if request is None else confirmation.confirm(opened, request)
            outcome = range_outcome.judge_range(opened, requested, done)
        if outcome.open:
            self.log.info("%d windows of the range are open: they are judged once they have closed", outcome.open)
        if wrong := outcome.describe():
            rows = [{"window": window, "reason": why} for window, why in (*outcome.failed, *outcome.pending)]
            self.log.warning("windows of the range that are not right:\n%s", format_table(rows))
            raise (TerminalError if outcome.failed else BusyError)(wrong + link_window(opened.name, rows[0]["window"]))
        return shorten(to_plain(outcome))


def name_bounds(chosen: Window | WindowRange) -> dict[str, str]:
    """Return the bounds of a run's window or range for its later tasks."""
    return {"from": format_moment(chosen.start), "to": format_moment(chosen.end)}


def read_range(detection: object) -> tuple[str, str] | None:
    """Return the bounds of the range that was judged, None without one."""
    if not isinstance(detection, Mapping) or "from" not in detection:
        return None
    return str(detection["from"]), str(detection["to"])


def parse_request_id(detection: object) -> int | None:
    """Return the repair request's number from a detection, None without a request. Raises TerminalError for any other
    value."""
    if not isinstance(detection, Mapping) or "request_id" not in detection:
        raise TerminalError("the detect task left no result; clear it together with its downstream tasks")
    request = detection["request_id"]
    return None if request is None else int(request)


def describe_worse(
    pipeline: str, revoked: Sequence[tuple[str, str]], newly_blocked: Sequence[tuple[str, str]]
) -> str | None:
    """Return one line for the person on call, None if nothing got worse. Each entry is a window with its reason."""
    worse = [*revoked, *newly_blocked]
    if not worse:
        return None
    counts = [(len(revoked), "revoked (rows read back differently)"), (len(newly_blocked), "newly blocked")]
    summary = ", ".join(f"{count} {what}" for count, what in counts if count)
    listed = ", ".join(f"{window} ({reason})" if reason else window for window, reason in worse[:5])
    more = f" and {len(worse) - 5} more" if len(worse) > 5 else ""
    first = worse[0][0]
    link = link_window(pipeline, first)
    return f"{pipeline}: {summary}: {listed}{more}; see why with `onceover explain {pipeline} {first}`{link}"
