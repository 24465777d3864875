"""The three tasks of every repair: detect, repair in one Spark application, confirm by reading back.

They hold no logic about windows. The rooms' services decide; these pass in who asked and show what came out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.errors import TerminalError
from onceover.model.json_text import to_plain
from onceover_airflow.metrics import count
from onceover_airflow.run_request import Asked, chosen_name
from onceover_airflow.spark_job import SparkJobOperator
from onceover_airflow.tables import evidence_table, format_table, shortened
from onceover_airflow.who import who_asked
from onceover_airflow.windows import DataInterval

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from onceover.detection.service import PlannedRepair

Scope = Literal["ledger", "run"]
"""`ledger`: every window the ledger knows and has not certified. `run`: the windows this run was asked for."""


class DetectOperator(BaseOperator):
    """Judges windows, certifies the right ones from the ledger, and asks for a repair of the failed ones.

    Returns the detection as a dictionary; its `request_id` is None when there is nothing to repair. A dry run writes
    nothing and returns `plan`, one row a window.
    """

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, scope: Scope, reason_needed: bool = False, **kwargs: Any) -> None:
        super().__init__(map_index_template="{{ task.pipeline }}", **kwargs)
        self.pipeline = pipeline
        self.scope = scope
        self.reason_needed = reason_needed

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.context import open_pipeline
        from onceover.detection import service as detection_service
        from onceover.detection.future_range import reject_future_range

        run, asked = context["dag_run"], Asked()
        with open_pipeline(chosen_name(self.pipeline), "detect") as opened:
            if self.scope == "run":
                asked = Asked.of_run(
                    context["params"],
                    DataInterval(run.data_interval_start, run.data_interval_end),
                    minutes=opened.pipeline.contract.window_minutes,
                    reason_needed=self.reason_needed,
                )
            if asked.window_range is not None:
                reject_future_range(opened, asked.window_range)
            if asked.dry_run and asked.window_range is not None:
                planned = detection_service.plan_repair(opened, window_range=asked.window_range, force=asked.force)
                return self._planned(opened.name, planned)
            detection = detection_service.detect(
                opened,
                who=who_asked(run),
                why=asked.reason or f"{run.dag_id}, run {run.run_id}",
                window_range=asked.window_range,
                force=asked.force,
            )
        return self._found(opened.name, to_plain(detection))

    def _planned(self, name: str, planned: Sequence[PlannedRepair]) -> dict[str, Any]:
        rows: list[dict[str, Any]] = to_plain(planned)
        shown = [{**row, "findings": [finding["kind"] for finding in row["findings"]]} for row in rows]
        self.log.info("dry run, nothing was written; a repair of %s would do this:\n%s", name, format_table(shown))
        return shortened({"pipeline": name, "dry_run": True, "request_id": None, "windows": len(rows), "plan": rows})

    def _found(self, name: str, found: dict[str, Any]) -> dict[str, Any]:
        counts = {key: value for key, value in found.items() if isinstance(value, int) and key != "request_id"}
        self.log.info("%s:\n%s", name, format_table([{"failed": len(found["failed"]), **counts}]))
        if found["failed"]:
            self.log.info("failed windows, with their evidence:\n%s", evidence_table(found["failed"]))
        if found["findings"]:
            self.log.warning(
                "windows wait, because of the pipeline as a whole:\n%s",
                evidence_table([{"window": "-", "findings": found["findings"]}]),
            )
        return shortened(found)


class RepairOperator(SparkJobOperator):
    """Runs jobs/repair.py for one request: one Spark application for all its windows. Skips when there is no request.

    A second run of the same request finds nothing to do.
    """

    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "detection")

    def __init__(self, *, pipeline: str, detection: object, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, job="repair", **kwargs)
        self.detection = detection

    def execute(self, context: Context) -> None:
        request = request_of(self.detection)
        if request is None:
            raise AirflowSkipException(f"nothing to repair in {self.pipeline}; no Spark was started")
        self.prepare(request)
        super().execute(context)

    def prepare(self, request: int) -> None:
        """Set the command: an argument list, never a shell line, with nothing secret in it."""
        self.arguments("request", request)

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """What OpenLineage's provider asks every operator for when its task has ended, well or not. Where that is not
        installed, nobody asks."""
        from onceover_airflow.lineage import lineage_facets

        return lineage_facets(chosen_name(self.pipeline), request_of(self.detection))


class ConfirmOperator(BaseOperator):
    """Re-reads what a request published. Red only for windows newly blocked, or revoked because they differ."""

    template_fields: Sequence[str] = ("pipeline", "detection")

    def __init__(self, *, pipeline: str, detection: object, **kwargs: Any) -> None:
        super().__init__(map_index_template="{{ task.pipeline }}", **kwargs)
        self.pipeline = pipeline
        self.detection = detection

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.context import open_pipeline
        from onceover.repair import service as repair_service

        request = request_of(self.detection)
        if request is None:
            raise AirflowSkipException(f"nothing was repaired in {self.pipeline}")
        with open_pipeline(chosen_name(self.pipeline), "confirm") as opened:
            confirmation = repair_service.confirm(opened, request)
        count(confirmation)
        result: dict[str, Any] = to_plain(confirmation)
        counts = {key: len(value) if isinstance(value, list) else value for key, value in result.items()}
        self.log.info("confirmed by reading back:\n%s", format_table([counts]))
        for trouble in ("failed", "newly_blocked", "revoked"):
            if rows := [{"window": window, "reason": reason} for window, reason in result[trouble]]:
                self.log.warning("%s:\n%s", trouble.replace("_", " "), format_table(rows))
        if lost := describe_worse(self.pipeline, confirmation.revoked, confirmation.newly_blocked):
            raise TerminalError(lost)
        return shortened(result)


def request_of(detection: object) -> int | None:
    """The repair request's number out of a detection, or None; anything else is no detection."""
    if not isinstance(detection, Mapping) or "request_id" not in detection:
        raise TerminalError("the detect task left no result; clear it together with the tasks behind it")
    request = detection["request_id"]
    return None if request is None else int(request)


def describe_worse(
    pipeline: str, revoked: Sequence[tuple[str, str]], newly_blocked: Sequence[tuple[str, str]]
) -> str | None:
    """One line for whoever is on call, or None if nothing got worse. Each entry is a window with its reason."""
    worse = [*revoked, *newly_blocked]
    if not worse:
        return None
    counts = [(len(revoked), "revoked, as it reads differently now"), (len(newly_blocked), "newly blocked")]
    said = ", ".join(f"{count} {what}" for count, what in counts if count)
    listed = ", ".join(f"{window} ({reason})" if reason else window for window, reason in worse[:5])
    more = f" and {len(worse) - 5} more" if len(worse) > 5 else ""
    return f"{pipeline}: {said}: {listed}{more}; see why with `onceover explain {pipeline} {worse[0][0]}`"
