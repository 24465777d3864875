"""Onceover's registration with Airflow, the only file that Airflow loads from this folder, see .airflowignore."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from onceover_airflow import backfill_listener
from onceover_airflow.page.addresses import PREFIX, find_root
from onceover_airflow.timetables import BackfilledDays


class OnceoverPlugin(AirflowPlugin):
    """The page in Airflow's navigation. Operators need no registration."""

    name = "onceover"
    timetables = [BackfilledDays]  # noqa: RUF012 - as its base declares it
    listeners = [backfill_listener]  # noqa: RUF012

    @cached_property
    def external_views(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The page's place in the navigation. Airflow resolves `href` itself, and icons from the server's root."""
        return [
            {
                "name": "Onceover",
                "href": f"{PREFIX.lstrip('/')}/",
                "destination": "nav",
                "url_route": "onceover",
                "nav_top_level": True,
                "icon": f"{find_root()}/static/icon.svg",
                "icon_dark_mode": f"{find_root()}/static/icon-dark.svg",
            }
        ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The page, built by the api-server alone: no other process of Airflow loads FastAPI for it."""
        from onceover_airflow.page.app import build_app

        return [{"app": build_app(), "url_prefix": PREFIX, "name": "onceover"}]
