"""The types that sampled values have, as a contract's schema declares them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain
from math import isfinite
from typing import Any, Final

_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST: Final = 2**63
_LARGEST_DECIMAL: Final = 10**38
_MOST_NAMES: Final = 64
"""Names of an object; one of more is taken for a map."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that is no struct, by its path, with its type and the value of each record, None without one."""

    path: tuple[str, ...]
    type: str
    values: Sequence[Any]

    @property
    def sql(self) -> str:
        return ".".join(("value", *map(quote, self.path)))


def quote(name: str) -> str:
    """Return the name as SQL and a schema write it."""
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def infer_type(values: Sequence[Any]) -> str | None:
    """Return the type in Spark's DDL that takes all of these JSON values, numbers with a fraction as Decimal; None
    where there is none, or several would do."""
    values = [value for value in values if value is not None]
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int} and all(-_LARGEST <= value < _LARGEST for value in values):
        return "BIGINT"
    if kinds == {int}:
        return "DECIMAL(38, 0)" if all(abs(value) < _LARGEST_DECIMAL for value in values) else None
    if kinds and kinds <= {int, Decimal}:
        return "DOUBLE" if all(map(_is_double, values)) else None
    if kinds == {str} and all(map(is_timestamp, values)):
        return "TIMESTAMP"
    if kinds and kinds <= {str, int, bool}:
        return "STRING"
    if kinds == {list}:
        of_one = infer_type(list(chain.from_iterable(values)))
        return of_one and f"ARRAY<{of_one}>"
    return _infer_object(values) if kinds == {dict} else None


def _infer_object(values: Sequence[Mapping[str, Any]]) -> str | None:
    columns = list_columns(values)
    if len(columns) > _MOST_NAMES:
        of_one = infer_type([each for value in values for each in value.values()])
        return of_one and f"MAP<STRING, {of_one}>"
    kinds = {name: infer_type(column) for name, column in columns.items()}
    fields = [f"{quote(name)}: {kind}" for name, kind in kinds.items() if kind]
    return f"STRUCT<{', '.join(fields)}>" if fields else None


def list_columns(objects: Sequence[Mapping[str, Any] | None]) -> dict[str, list[Any]]:
    """Return the members of objects, by name, a value for each object: of names that differ in case the first, and none
    that a schema cannot write."""
    names: dict[str, str] = {"": ""}
    for name in filter(str.isprintable, chain.from_iterable(each or () for each in objects)):
        names.setdefault(name.lower(), name)
    return {name: [(each or {}).get(name) for each in objects] for name in names.values() if name}


def list_fields(objects: Sequence[Mapping[str, Any] | None], path: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the fields of objects that have a type, also of those within structs."""
    for name, values in list_columns(objects).items():
        kind = infer_type(values)
        if kind and kind.startswith("STRUCT"):
            yield from list_fields(values, (*path, name))
        elif kind:
            yield Field((*path, name), kind, values)


def _is_double(value: int | Decimal) -> bool:
    """Return whether a DOUBLE takes the number: it becomes neither infinite nor zero."""
    try:
        nearest = float(value)
    except OverflowError:
        return False
    return isfinite(nearest) and (nearest != 0 or value == 0)


def is_timestamp(text: str) -> bool:
    """Return whether a field of type TIMESTAMP takes the text."""
    if not _TIMESTAMP.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
