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
from onceover.model.ticket import TICKET_LENGTH
from onceover_airflow.run_request import chosen_name

EVERY = "every pipeline"
"""The choice of all pipelines: never a default. Its space keeps it apart from every pipeline's name."""

LOSSES = ("expired", "unreadable")
"""Why offsets are lost, see `kind_of_loss`."""

# A pattern rather than the format "date-time": Airflow checks that format only if another package is there, and with it
# refuses a time without seconds, which is how windows are written in every table and message one would copy from.
# [0-9], as \d takes the digits of every script.
_TWO = "[0-9]{2}"
_TIME = rf"^\s*[0-9]{{4}}-{_TWO}-{_TWO}T{_TWO}:{_TWO}(:{_TWO}(\.[0-9]+)?)?(Z|[+-]{_TWO}:{_TWO})\s*$"
_EXAMPLE = "2013-01-01T05:00Z"
_ZONED = f"With a time zone: {_EXAMPLE}."


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


def text(title: str, description: str, pattern: str, example: str) -> Param:
    """Return a required param of one line that the pattern describes."""
    return Param(type="string", title=title, description=description, pattern=pattern, examples=[example])


def window_bound(title: str, description: str) -> Param:
    return text(title, f"{description} {_ZONED}", _TIME, _EXAMPLE)


def optional(title: str, description: str, kind: str = "string", **schema: Any) -> Param:
    return Param(None, type=["null", kind], title=title, description=description, **schema)


def optional_bound(title: str, description: str) -> Param:
    return optional(title, f"{description} {_ZONED}", pattern=_TIME, examples=[_EXAMPLE])


def one_window() -> Param:
    return window_bound("Window", "Start of the window.")


def window_range(first: str = "Start of the first window.") -> dict[str, Param]:
    """Return the params `from` and `to`; `first` describes `from`."""
    return {"from": window_bound("From", first), "to": window_bound("To", "End of the last window, exclusive.")}


def reason(description: str) -> Param:
    return optional("Reason", description, maxLength=REASON_LENGTH)


def lost_offsets() -> Param:
    described = "GENERATION-PARTITION:START-END, as `onceover holes` shows it; END is exclusive."
    return text("Offsets", described, r"^\s*[0-9a-f]{8}-[0-9]{1,5}:[0-9]{1,18}-[0-9]{1,18}\s*$", "1f2e3d4c-0:1200-1300")


def kind_of_loss() -> Param:
    return Param(
        LOSSES[0],
        type="string",
        title="Kind",
        description="Kafka no longer has them, or no reader gets them.",
        enum=list(LOSSES),
    )


def ticket() -> Param:
    described = "Where others find what you do about the windows, like INC-42. Needed unless you release them."
    return optional("Ticket", described, maxLength=TICKET_LENGTH)


def revision() -> Param:
    described = "Number of a kept revision; empty for the last one."
    return optional("Revision", described, "integer", minimum=0, maximum=2**31 - 1)


def switch(title: str, description: str) -> Param:
    return Param(False, type="boolean", title=title, description=description)


def plan() -> Param:
    described = "The token that a dry run showed: the run fails if it would repair anything else by now."
    return optional("Plan", described, pattern=r"^\s*[0-9a-f]{64}\s*$")


def force() -> Param:
    return switch("Force", "Rebuild certified windows too, not only those that are not certified.")
