"""Names in Airflow that a deployment, its DAGs and doctor agree on."""

from __future__ import annotations

from typing import Final

POOL: Final = "onceover_spark"
"""The pool of one slot that every Spark task takes."""


def build_master(kind: str | None, host: str | None, port: int | None) -> str:
    """Return the URL of Spark's master by a connection's type, host and port, composed as SparkSubmitHook does."""
    is_whole = kind == "spark" and host and ("://" in host or not port)
    return (f"{host}" if is_whole else f"{kind}://{host or ''}") + (f":{port}" if port else "")
