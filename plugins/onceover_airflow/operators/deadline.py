"""A pipeline's deadline as a task: red once for each window that has missed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, Context

from onceover.errors import TerminalError
from onceover.model.window import format_moment
from onceover_airflow.page_links import PipelineLink, link_window
from onceover_airflow.run_request import chosen_name


class DeadlineOperator(BaseOperator):
    """Turns red if windows of the pipeline are not certified within its deadline: once for each window, so that the
    notifier reports it once."""

    template_fields: Sequence[str] = ("pipeline",)
    operator_extra_links = (PipelineLink(),)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        from onceover.context import open_pipeline
        from onceover.detection import deadlines

        with open_pipeline(chosen_name(self.pipeline), "deadlines") as opened:
            name, windows = opened.name, deadlines.list_overdue(opened)
        if windows:
            link = link_window(name, format_moment(windows[0].window_start))
            raise TerminalError(deadlines.describe_overdue(name, windows) + link)
        self.log.info("%s: no further window has missed its deadline since the last check", name)
