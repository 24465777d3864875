"""Names in Airflow that a deployment, its DAGs and doctor agree on."""

from __future__ import annotations

from typing import Final

POOL: Final = "onceover_spark"
"""The pool of one slot that every Spark task takes."""
