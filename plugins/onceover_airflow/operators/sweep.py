"""The daily sweep as a task: it compares certified windows, reopens those that differ, and is red if there are any."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from onceover.errors import BusyError, TerminalError
from onceover.explain.local_times import format_window
from onceover.model.json_text import to_plain
from onceover_airflow.page_links import PipelineLink, link_window
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.tables import evidence_table, format_table, shorten


class SweepOperator(PipelineOperator):
    """Compares every certified window of a pipeline with its certificate.

    Red if a window differs: its raw file or rows were changed from outside. Red once for each, since a differing window
    loses its certificate; red for a day of quarantine that has lost records until its file is back or has expired.
    Raises BusyError, to be retried, if a batch in flight may explain the difference.
    """

    operator_extra_links = (PipelineLink(),)

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.detection import sweep

        with self.open("sweep") as opened:
            name, swept = opened.name, sweep.sweep_pipeline(opened, say=self._log_progress)
        result: dict[str, Any] = to_plain(swept)
        counts = {key: value for key, value in result.items() if isinstance(value, int)}
        self.log.info("%s:\n%s", name, format_table([{**counts, "differing": len(result["differing"])}]))
        if result["differing"]:
            self.log.warning("no longer as certified:\n%s", evidence_table(result["differing"]))
            raise TerminalError(describe_differing(result))
        if swept.quarantine:
            days = ", ".join(str(each.day) for each in swept.quarantine[:5])
            raise TerminalError(
                f"{name}: quarantine files of {len(swept.quarantine)} days have lost records ({days}); see "
                f"`onceover sweep {name}`"
            )
        if swept.waiting:
            raise BusyError(
                f"{name}: {swept.waiting} windows may differ only because a batch has not ended yet; Airflow retries"
            )
        return shorten(result)

    def _log_progress(self, done: int, total: int) -> None:
        self.log.info("compared %s of %s certified windows", f"{done:,}", f"{total:,}")


def describe_differing(result: dict[str, Any]) -> str:
    """Return one line for the person on call."""
    windows = [each["window"] for each in result["differing"]]
    named = ", ".join(map(format_window, result["differing"][:5]))
    more = f" and {len(windows) - 5} more" if len(windows) > 5 else ""
    return (
        f"{result['pipeline']}: {len(windows)} of {result['compared']} certified windows are no longer as certified: "
        f"{named}{more}; {result['reopened']} will be judged again and repaired; see "
        f"`onceover explain {result['pipeline']} {windows[0]}`{link_window(result['pipeline'], windows[0])}"
    )
