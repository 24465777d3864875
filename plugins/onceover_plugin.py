"""Onceover's registration with Airflow, the only file that Airflow loads from this folder, see .airflowignore."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class OnceoverPlugin(AirflowPlugin):
    """Operators need no registration; views and listeners would be named here."""

    name = "onceover"
