"""Links from Airflow into the page: of a task's own buttons, and at the end of messages that name a window."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from onceover_airflow.page.addresses import find_base_path, locate_pipeline, locate_run
from onceover_airflow.run_request import chosen_name


def find_server() -> str:
    """Return Airflow's `[api] base_url` without its path: empty if it is not set."""
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return base.removesuffix(find_base_path())


def link_window(pipeline: str, window: str) -> str:
    """Return the end of a message, which opens the window; empty where Airflow's own address is unknown."""
    server = find_server()
    return f"; open {server}{locate_pipeline(pipeline)}/{quote(window, safe=':')}" if server else ""


def frame(path: str) -> str:
    """Return the address at which Airflow's frame shows a path of the page."""
    return f"{find_server()}{find_base_path()}/plugin/onceover{path}"


class RunLink(BaseOperatorLink):
    """The button that opens the run's windows. Airflow shows it once the task has ended."""

    name = "Explain these windows"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return frame(locate_run(ti_key.dag_id, ti_key.run_id))


class PipelineLink(BaseOperatorLink):
    """The button that opens the pipeline, of tasks that request no repair themselves."""

    name = "Explain this pipeline"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return frame(locate_pipeline(chosen_name(operator.pipeline)))
