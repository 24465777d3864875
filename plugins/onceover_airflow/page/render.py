"""HTML from templates. Every value is escaped; an undefined one is an error."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from onceover.explain.page.strip import MEANINGS
from onceover.explain.plan import describe_plan
from onceover.explain.window_text import NO_LANDING
from onceover.model.reason import REASON_LENGTH
from onceover.model.ticket import TICKET_LENGTH
from onceover.model.window import format_minute, format_moment
from onceover.model.wording import pluralize
from onceover_airflow.page import addresses

GLYPHS: Final = {
    ".": " ",
    "o": "·",
    "c": "?",
    "f": "×",
    "r": "↻",
    "b": "■",
    "d": "!",
    "e": "–",
    "C": "✓",
    "R": "✔",
    "L": "≈",
}
"""The sign of each letter of a strip: colour alone never says a state."""

NO_REPAIRS: Final = ("accept_loss", "take_windows")
"""The DAGs of the page whose runs make no repair request."""


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a whole page from `templates/`."""
    places = {"base": addresses.find_base_path(), "root": addresses.find_root()}
    return HTMLResponse(_ENVIRONMENT.get_template(template).render(**places, **values), status)


def point_below(command: str) -> str:
    """Return words that lead to the form of a window's page that does what the command does; empty if none does."""
    if command.startswith("onceover reread "):
        return "the form below, or "
    if command.startswith("onceover repair ") and "--force" not in command:
        return "the plan below, or " if "--dry-run" in command else "the button below, or "
    return ""


def _format_number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _format_time(moment: datetime | None) -> str:
    return "unknown" if moment is None else format_minute(moment)


_ENVIRONMENT: Final = Environment(
    loader=PackageLoader("onceover_airflow.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "number": _format_number,
    "time": _format_time,
    "exact": format_moment,
    "plural": pluralize,
}
_ENVIRONMENT.globals |= {
    "below": point_below,
    "describe_plan": describe_plan,
    "glyphs": GLYPHS,
    "meanings": MEANINGS,
    "reason_length": REASON_LENGTH,
    "ticket_length": TICKET_LENGTH,
    "no_landing": NO_LANDING,
    "no_repairs": NO_REPAIRS,
    "to_pipeline": addresses.locate_pipeline,
    "to_window": addresses.locate_window,
    "to_range": addresses.locate_range,
    "to_run": addresses.locate_run,
}
