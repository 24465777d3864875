"""Avro's types as the tests draw them, and the JSON of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class AvroKind:
    """A type; one within itself is the same object again."""

    kind: str
    logical: str = ""
    name: str = ""
    namespace: str = ""
    size: int = 0
    precision: int = 0
    scale: int = 0
    symbols: tuple[str, ...] = ()
    inner: list[AvroKind] = field(default_factory=list)
    fields: list[tuple[str, AvroKind]] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


def render(kind: AvroKind, *, only_decimals: bool = False) -> str:
    """Return the schema's JSON; with `only_decimals`, without any other logical type, so that fastavro returns the
    values below."""
    return json.dumps(_render(kind, "", set(), only_decimals))


def _render(kind: AvroKind, namespace: str, seen: set[str], only_decimals: bool) -> Any:
    if kind.kind == "union":
        return [_render(branch, namespace, seen, only_decimals) for branch in kind.inner]
    if kind.kind in ("array", "map"):
        inner = "items" if kind.kind == "array" else "values"
        return {"type": kind.kind, inner: _render(kind.inner[0], namespace, seen, only_decimals)}
    if kind.name and kind.full_name in seen:
        return kind.name if kind.namespace == namespace else kind.full_name
    made: dict[str, Any] = {"type": kind.kind}
    if kind.logical and (kind.logical == "decimal" or not only_decimals):
        made["logicalType"] = kind.logical
        if kind.logical == "decimal":
            made |= {"precision": kind.precision, "scale": kind.scale}
    if kind.name:
        seen.add(kind.full_name)
        made["name"] = kind.name
        if kind.namespace != namespace:
            made["namespace"] = kind.namespace
    if kind.kind == "fixed":
        made["size"] = kind.size
    if kind.kind == "enum":
        made["symbols"] = list(kind.symbols)
    if kind.kind == "record":
        made["fields"] = [
            {"name": name, "type": _render(inner, kind.namespace, seen, only_decimals)} for name, inner in kind.fields
        ]
    return kind.kind if made == {"type": kind.kind} else made
