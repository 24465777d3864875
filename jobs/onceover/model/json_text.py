"""Values as JSON, for `--json`, for the ledger, and from one process to another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any

from onceover.model.window import format_moment


def to_plain(value: object) -> Any:
    """Return the value in JSON's own types: a moment as `format_moment` writes it, a mapping or sequence of plain
    values.

    An object becomes its `as_dict()`; a dataclass without one its fields, unless its type defines `__str__`. Any other
    value becomes its `str`.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return format_moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if hasattr(value, "as_dict"):
        return to_plain(value.as_dict())
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def to_json(value: object, indent: int | None = None) -> str:
    """Return the value as JSON: in one line, or indented by that many spaces."""
    return json.dumps(to_plain(value), indent=indent)
