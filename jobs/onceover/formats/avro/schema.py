"""Avro schemas, parsed as strictly as the specification has them (Apache Avro 1.12)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_PRIMITIVE: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL: Final[Mapping[str, frozenset[str]]] = {
    "decimal": frozenset({"bytes", "fixed"}),
    "uuid": frozenset({"string", "fixed"}),
    "date": frozenset({"int"}),
    "time-millis": frozenset({"int"}),
    "duration": frozenset({"fixed"}),
    **dict.fromkeys(
        ("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos", "local-timestamp-millis",
         "local-timestamp-micros", "local-timestamp-nanos"),
        frozenset({"long"}),
    ),
}  # fmt: skip
_SIZES: Final = {"uuid": 16, "duration": 12}
_LARGEST_FIXED: Final = 1 << 20
_MOST_DEPTH: Final = 64
MOST_CHARACTERS: Final = 500
"""Of a reason, which each of a writer's values has; a name may be as long as its schema."""
NO_DEFAULT: Final = object()


class AvroSchemaError(ValueError):
    """No Avro schema; the message says where and why, without a full stop."""


@dataclass(slots=True, eq=False)
class AvroField:
    name: str
    type: AvroType
    aliases: frozenset[str]
    default: object


@dataclass(slots=True, eq=False)
class AvroType:
    """A type; what its kind has no use for is empty. An unknown or misplaced logical type is none, as specified."""

    kind: str
    logical: str = ""
    name: str = ""  # without the namespace, as types are matched
    aliases: frozenset[str] = frozenset()
    size: int = 0
    precision: int = 0
    scale: int = 0
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None
    inner: list[AvroType] = field(default_factory=list)  # of an array or a map its one, of a union its branches
    fields: list[AvroField] = field(default_factory=list)

    def __str__(self) -> str:
        if self.logical == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        if self.kind == "union":
            return f"union of {' and '.join(map(str, self.inner))}"
        if self.kind == "fixed" and not self.logical:
            return f"fixed {self.name} of {self.size} bytes"
        return self.logical or f"{self.kind} {self.name}".strip()


def parse_schema(text: str) -> AvroType:
    """Return the type of this JSON. Raises AvroSchemaError."""
    try:
        return _Parser().parse(json.loads(text), "", "")
    except RecursionError as error:
        raise AvroSchemaError("it is nested too deeply") from error
    except ValueError as error:
        if isinstance(error, AvroSchemaError):
            raise
        raise AvroSchemaError(f"no JSON: {error}") from error


class _Parser:
    def __init__(self) -> None:
        self._known: dict[str, AvroType] = {}
        self._depth = 0

    def parse(self, given: Any, namespace: str, path: str) -> AvroType:
        if self._depth == _MOST_DEPTH:
            raise AvroSchemaError("it is nested too deeply")
        self._depth += 1
        made = self._parse(given, namespace, path)
        self._depth -= 1
        return made

    def _parse(self, given: Any, namespace: str, path: str) -> AvroType:
        if isinstance(given, str):
            return self._look_up(given, namespace, path)
        if isinstance(given, list):
            return self._parse_union(given, namespace, path)
        if not isinstance(given, dict) or "type" not in given:
            raise _wrong(path, "no type")
        kind = given["type"]
        if isinstance(kind, dict | list) or (kind not in _PRIMITIVE | _NAMED | {"array", "map"}):
            return self.parse(kind, namespace, path)
        if kind in _NAMED:
            return self._parse_named(given, kind, namespace, path)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            if inner not in given:
                raise _wrong(path, f"an {kind} without {inner}" if kind == "array" else f"a map without {inner}")
            return AvroType(kind, inner=[self.parse(given[inner], namespace, path)])
        return _add_logical(AvroType(kind), given)

    def _look_up(self, name: str, namespace: str, path: str) -> AvroType:
        if name in _PRIMITIVE:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._known.get(full) or self._known.get(name)
        if found is None:
            raise _wrong(path, f"no type of the name {name[:80]!r}")
        return found

    def _parse_union(self, given: list[Any], namespace: str, path: str) -> AvroType:
        branches = [self.parse(each, namespace, path) for each in given]
        kinds = [branch if branch.name else branch.kind for branch in branches]  # a name has one object
        if not kinds or len(set(kinds)) < len(kinds) or "union" in kinds:
            raise _wrong(path, "a union is of different types, at least one, none of them a union")
        return AvroType("union", inner=branches)

    def _parse_named(self, given: Mapping[str, Any], kind: str, namespace: str, path: str) -> AvroType:
        name = given.get("name")
        if not isinstance(name, str) or not all(map(_NAME.fullmatch, name.split("."))):
            raise _wrong(path, f"{name!r} is no name")
        space, _, short = name.rpartition(".")
        space = space or (given["namespace"] if isinstance(given.get("namespace"), str) else namespace)
        made = AvroType("record" if kind == "error" else kind, name=short, aliases=_read_aliases(given, path))
        full = f"{space}.{short}" if space else short
        if full in self._known:
            raise _wrong(path, f"two types of the name {full}")
        self._known[full] = made
        if kind == "fixed":
            made.size = given.get("size")  # type: ignore[assignment]
            if type(made.size) is not int or not 0 <= made.size <= _LARGEST_FIXED:
                raise _wrong(path, f"{made.size!r} is no size of a fixed")
            return _add_logical(made, given)
        if kind == "enum":
            symbols = given.get("symbols")
            are_names = isinstance(symbols, list) and all(isinstance(s, str) and _NAME.fullmatch(s) for s in symbols)
            if not symbols or not are_names:
                raise _wrong(path, "the symbols of an enum are a list of names")
            made.symbols, made.default_symbol = tuple(symbols), given.get("default")
            if len(set(symbols)) < len(symbols) or made.default_symbol not in (None, *symbols):
                raise _wrong(path, "an enum's symbols differ, and its default is one of them")
            return made
        made.fields = [self._parse_field(each, space, path) for each in _read_list(given, "fields", path)]
        names = [each.name for each in made.fields]
        if len(set(names)) < len(names):
            raise _wrong(path, f"record {short} has two fields of one name")
        return made

    def _parse_field(self, given: Any, namespace: str, path: str) -> AvroField:
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong(path, f"{str(name)[:80]!r} is no name of a field")
        inner = f"{path}.{name}" if path else name
        if "type" not in given:
            raise _wrong(inner, "no type")
        kind = self.parse(given["type"], namespace, inner)
        return AvroField(name, kind, _read_aliases(given, inner), given.get("default", NO_DEFAULT))


def _read_list(given: Mapping[str, Any], key: str, path: str) -> list[Any]:
    found = given.get(key)
    if not isinstance(found, list):
        raise _wrong(path, f"a record without {key}")
    return found


def _read_aliases(given: Mapping[str, Any], path: str) -> frozenset[str]:
    aliases = given.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        raise _wrong(path, "aliases are a list of names")
    return frozenset(each.rpartition(".")[2] for each in aliases)


def _add_logical(made: AvroType, given: Mapping[str, Any]) -> AvroType:
    logical = given.get("logicalType")
    if not isinstance(logical, str) or made.kind not in _LOGICAL.get(logical, ()):
        return made
    if made.kind == "fixed" and made.size != _SIZES.get(logical, made.size):
        return made
    if logical == "decimal":
        precision, scale = given.get("precision"), given.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            return made
        if made.kind == "fixed" and precision > int(math.log10(2) * (8 * made.size - 1)):
            return made  # its bytes have no room for so many digits
        made.precision, made.scale = precision, scale
    made.logical = logical
    return made


def _wrong(path: str, what: str) -> AvroSchemaError:
    return AvroSchemaError((f"field {path}: {what}" if path else what)[:MOST_CHARACTERS])
