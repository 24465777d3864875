"""How a value becomes JSON, for `--json`, for the ledger, and from one process to another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any

from onceover.model.window import written


def plain(value: object) -> Any:
    """The value in JSON's own types. A moment is as `written`, a mapping and a sequence hold plain values.

    An object is what its `as_dict` says; a dataclass without one is its fields, unless its type has a text of its own.
    Anything else is its text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return written(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def json_text(value: object, indent: int | None = None) -> str:
    """The value as JSON: one line, or indented by so many spaces."""
    return json.dumps(plain(value), indent=indent)
