"""Addresses of the page and of Airflow below `[api] base_url`'s path, for links in HTML, messages and redirects."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from airflow.configuration import conf

from onceover.model.window import format_moment

PREFIX: Final = "/onceover"
"""Where Airflow mounts the page."""


def find_base_path() -> str:
    """Return the path of Airflow's `[api] base_url` without its last slash: empty, or like `/airflow`."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def find_root() -> str:
    """Return the page's own path, like `/airflow/onceover`."""
    return find_base_path() + PREFIX


def locate_pipeline(name: str) -> str:
    return f"{find_root()}/{quote(name, safe='')}"


def locate_window(name: str, start: datetime) -> str:
    return f"{locate_pipeline(name)}/{format_moment(start)}"


def locate_range(name: str, start: datetime, end: datetime) -> str:
    return f"{locate_pipeline(name)}/range?" + urlencode({"from": format_moment(start), "to": format_moment(end)})


def locate_run(dag_id: str, run_id: str) -> str:
    return f"{find_root()}/runs/{quote(dag_id, safe='')}/{quote(run_id, safe='')}"


def locate_login(back: str) -> str:
    """Return Airflow's login, which leads back to a path of this server."""
    return f"{find_base_path()}/api/v2/auth/login?" + urlencode({"next": back})
