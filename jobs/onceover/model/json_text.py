"""How a value becomes JSON, for `--json`, for the ledger, and from one process to another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any

from onceover.model.window import format_moment


def to_plain(value: object) -> Any:
    """The value in JSON's own types. A moment is as `written`, a mapping and a sequence hold plain values.

    An object is what its `as_dict` says; a dataclass without one is its fields, unless its type has a text of its own.
    Anything else is its text.
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
    """The value as JSON: one line, or indented by so many spaces."""
    return json.dumps(to_plain(value), indent=indent)
