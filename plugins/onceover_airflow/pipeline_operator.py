"""What the tasks of one pipeline share: its name, which a mapped task shows as its own, and its context."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from onceover_airflow.run_request import chosen_name

if TYPE_CHECKING:
    from onceover.context import PipelineContext


class PipelineOperator(BaseOperator):
    """A task of one pipeline, whose name may be a template."""

    template_fields: Sequence[str] = ("pipeline",)

    # A default, which `partial` reads: Airflow renders the label before it makes the task of a mapped one.
    def __init__(self, *, pipeline: str, map_index_template: str | None = "{{ task.pipeline }}", **kwargs: Any) -> None:
        super().__init__(map_index_template=map_index_template, **kwargs)
        self.pipeline = pipeline

    def open(self, purpose: str) -> AbstractContextManager[PipelineContext]:
        """Open the pipeline as `open_pipeline` does. Raise UsageError without a name, too."""
        from onceover.context import open_pipeline

        return open_pipeline(chosen_name(self.pipeline), purpose)
