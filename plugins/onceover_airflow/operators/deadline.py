"""A pipeline's deadline as a task: red once for each window that has missed it."""

from __future__ import annotations

from airflow.sdk import Context

from onceover.errors import TerminalError
from onceover.model.window import format_moment
from onceover_airflow.page_links import PipelineLink, link_window
from onceover_airflow.pipeline_operator import PipelineOperator


class DeadlineOperator(PipelineOperator):
    """Turns red if windows of the pipeline are not certified within its deadline: once for each window, so that the
    notifier reports it once."""

    operator_extra_links = (PipelineLink(),)

    def execute(self, context: Context) -> None:
        from onceover.detection import deadlines

        with self.open("deadlines") as opened:
            name, windows, windowing = opened.name, deadlines.list_overdue(opened), opened.windowing
        if windows:
            link = link_window(name, format_moment(windows[0].window_start))
            raise TerminalError(deadlines.describe_overdue(name, windows, windowing) + link)
        self.log.info("%s: no further window has missed its deadline since the last check", name)
