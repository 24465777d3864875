"""The params of the repair DAGs: what Airflow shows as a form and checks before a run exists.

The library checks all of it again, because a form's list may be older than the pipelines folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from onceover.config.pipelines import names
from onceover.errors import UsageError
from onceover.model.reason import REASON_LENGTH
from onceover_airflow.run_request import chosen_name

EVERY = "every pipeline"
"""The choice of all pipelines: never a default. Its space keeps it apart from every pipeline's name."""

# A pattern rather than the format "date-time": Airflow checks that format only if another package is there, and with it
# refuses a time without seconds, which is how windows are written in every table and message one would copy from.
_TIME = r"^\s*\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)\s*$"


def known_pipelines() -> list[str]:
    """List the pipelines' names, at every parse: a broken TOML must fail its own pipeline's tasks, not a DAG's load."""
    return list(names())


def one_pipeline(known: Sequence[str]) -> Param:
    """Return a required param, filled in only if there is a single pipeline."""
    schema: dict[str, Any] = {"type": "string", "title": "Pipeline", "description": "One of pipelines/*.toml."}
    if known:
        schema["enum"] = list(known)
    return Param(known[0], **schema) if len(known) == 1 else Param(**schema)


def pipelines(known: Sequence[str]) -> Param:
    """Return the param of a scheduled DAG, which needs a default: the only pipeline, else None, which is refused."""
    return Param(
        known[0] if len(known) == 1 else None,
        type=["null", "string"],
        title="Pipeline",
        description=f"One of pipelines/*.toml, or '{EVERY}'. Without a choice a backfill fails rather than take all.",
        enum=[*known, EVERY, None],
    )


def chosen_pipelines(choice: object, known: Sequence[str]) -> list[str]:
    """Return the pipelines that a choice means. Raises UsageError for an empty choice and for an unknown name."""
    if choice == EVERY:
        return list(known)
    name = chosen_name(choice)
    if name not in known:
        raise UsageError(f"unknown pipeline {name[:60]!r}; choose one of: {', '.join(known) or 'none yet, add a TOML'}")
    return [name]


def window_bound(title: str, description: str) -> Param:
    return Param(
        type="string",
        title=title,
        description=f"{description} With a time zone: 2013-01-01T05:00Z.",
        pattern=_TIME,
        examples=["2013-01-01T05:00Z"],
    )


def optional_bound(title: str, description: str) -> Param:
    return Param(
        None,
        type=["null", "string"],
        title=title,
        description=f"{description} With a time zone: 2013-01-01T05:00Z.",
        pattern=_TIME,
        examples=["2013-01-01T05:00Z"],
    )


def reason(description: str) -> Param:
    return Param(None, type=["null", "string"], title="Reason", description=description, maxLength=REASON_LENGTH)


def switch(title: str, description: str) -> Param:
    return Param(False, type="boolean", title=title, description=description)


def force() -> Param:
    return switch("Force", "Rebuild certified windows too, not only those that are not certified.")
