"""What a reader's schema makes of values that were written with another: the specification's schema resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal as Exact
from typing import Any, Final

import pyarrow as pa

from onceover.formats.avro.arrow_types import find_only, find_row_type, find_type
from onceover.formats.avro.nested import Items, RecordReader, Union
from onceover.formats.avro.scalars import (
    Boolean,
    Bytes,
    Constant,
    Decimal,
    Enum,
    Float,
    Nulls,
    Number,
    Refusal,
    TypeReader,
)
from onceover.formats.avro.schema import MOST_CHARACTERS, NO_DEFAULT, AvroField, AvroType

_PROMOTED: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
_JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int,), "long": (int,), "float": (int, float), "double": (int, float), "array": (list,)
}  # fmt: skip
"""Of defaults that Arrow takes more for."""
_RANGES: Final = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}


class UnresolvedError(ValueError):
    """The reader's schema takes no value of the writer's; the message names the field."""


def resolve(writer: AvroType, reader: AvroType) -> tuple[TypeReader, Sequence[str]]:
    """Return what reads the writer's values as `find_row_type(reader)`, and how these differ from the reader's own, a
    field each. Raises UnresolvedError."""
    find_row_type(reader)
    resolver = _Resolver()
    return resolver.resolve(writer, reader, ""), resolver.differences


class _Resolver:
    def __init__(self) -> None:
        self._skipped: dict[AvroType, RecordReader] = {}
        self.differences: list[str] = []

    def resolve(self, writer: AvroType, reader: AvroType, path: str) -> TypeReader:
        if writer.kind == "union":
            return self._resolve_union(writer, reader, path)
        if reader.kind == "union":
            if writer.kind == "null" and any(branch.kind == "null" for branch in reader.inner):
                return Nulls(find_type(reader))
            return self.resolve(writer, find_only(reader, path), path)
        if reader.kind not in _PROMOTED.get(writer.kind, (writer.kind,)) or not _have_one_name(writer, reader):
            raise _refuse(writer, reader, path)
        # The bytes of a text are no decimal; a number that was no time may count anything.
        is_promoted = writer.kind != reader.kind and bool(reader.logical)
        if is_promoted or (writer.logical and reader.logical and str(writer) != str(reader)):
            raise _refuse(writer, reader, path)
        if writer.kind != reader.kind or str(writer) != str(reader):
            self._note(path, f"{writer} is read as {reader}")
        if reader.kind == "record":
            return self._resolve_record(writer, reader, path)
        if reader.kind in ("array", "map"):
            item = self.resolve(writer.inner[0], reader.inner[0], path)
            return Items(find_type(reader), path, item, Bytes(pa.string(), path) if reader.kind == "map" else None)
        if reader.kind == "enum":
            known = {symbol: symbol for symbol in reader.symbols}
            if others := [symbol for symbol in writer.symbols if symbol not in known]:
                fate = f"are {reader.default_symbol}" if reader.default_symbol else "go to quarantine"
                self._note(path, f"{', '.join(others)} {fate}")
            return Enum([known.get(symbol, reader.default_symbol) for symbol in writer.symbols], path)
        return _read_scalar(writer, reader, path)

    def _resolve_union(self, writer: AvroType, reader: AvroType, path: str) -> TypeReader:
        kind = find_type(reader)
        branches: list[TypeReader] = []
        for branch in writer.inner:
            try:
                branches.append(self.resolve(branch, reader, path))
            except UnresolvedError as error:
                branches.append(Refusal(kind, str(error)))
                self.differences.append(f"{error}, and goes to quarantine")
        if all(isinstance(branch, Refusal) for branch in branches):
            raise _refuse(writer, reader, path)
        return Union(kind, branches)

    def _resolve_record(self, writer: AvroType, reader: AvroType, path: str) -> RecordReader:
        record = RecordReader(find_type(reader))
        places = _match_fields(writer, reader)
        for each in writer.fields:
            place = places.get(each.name)
            if place is None:
                self._note(_join(path, each.name), "is left out")
                record.steps.append((self.skip(each.type), None))
            else:
                wanted = reader.fields[place]
                if wanted.name != each.name:
                    self._note(_join(path, wanted.name), f"was {each.name}")
                record.steps.append((self.resolve(each.type, wanted.type, _join(path, wanted.name)), place))
        for place, wanted in enumerate(reader.fields):
            if place not in places.values():
                if wanted.default is NO_DEFAULT:
                    raise UnresolvedError(f"field {_join(path, wanted.name)}: missing, and without a default")
                self._note(_join(path, wanted.name), "has its default")
                record.constants.append((_make_constant(wanted, _join(path, wanted.name)), place))
        return record

    def _note(self, path: str, what: str) -> None:
        self.differences.append(f"field {path}: {what}" if path else what)

    def skip(self, writer: AvroType) -> TypeReader:
        if writer.kind == "record":
            if writer not in self._skipped:  # it may be within itself
                self._skipped[writer] = record = RecordReader()
                record.steps += [(self.skip(each.type), None) for each in writer.fields]
            return self._skipped[writer]
        if writer.kind == "union":
            return Union(pa.null(), [self.skip(branch) for branch in writer.inner])
        if writer.kind in ("array", "map"):
            keys = Bytes(pa.string(), "") if writer.kind == "map" else None
            return Items(pa.null(), "", self.skip(writer.inner[0]), keys)
        if writer.kind == "enum":
            return Enum(writer.symbols, "")
        if writer.kind == "null":
            return Nulls(pa.null())
        return _read_scalar(writer, AvroType(writer.kind, size=writer.size), "")


def _read_scalar(writer: AvroType, reader: AvroType, path: str) -> TypeReader:
    kind = find_type(reader)
    width = writer.size if writer.kind == "fixed" else None
    if pa.types.is_decimal(kind):
        return Decimal(kind, path, width)
    if writer.kind in ("bytes", "string", "fixed"):
        return Bytes(kind, path, width)
    if writer.kind == "boolean":
        return Boolean()
    if writer.kind in ("float", "double"):
        return Float(kind, 4 if writer.kind == "float" else 8)
    factor = 1000 if reader.logical in ("timestamp-millis", "local-timestamp-millis") else 1
    least, most = _RANGES[writer.kind]
    return Number(kind, path, -(-least // factor), most // factor, factor)


def _have_one_name(writer: AvroType, reader: AvroType) -> bool:
    return (writer.name == reader.name or writer.name in reader.aliases) and writer.size == reader.size


def _match_fields(writer: AvroType, reader: AvroType) -> dict[str, int]:
    """Return the place among the reader's fields of each of the writer's: by its name, or else by one alias."""
    left = {each.name for each in writer.fields}
    places = {each.name: place for place, each in enumerate(reader.fields) if each.name in left}
    for place, each in enumerate(reader.fields):
        aliases = sorted(each.aliases & (left - places.keys()))
        if aliases and each.name not in places:
            places[aliases[0]] = place
    return places


def _make_constant(field: AvroField, path: str) -> Constant:
    try:
        return Constant(pa.array([_read_default(field.default, field.type)], find_type(field.type)))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, pa.ArrowException) as error:
        raise UnresolvedError(f"field {path}: its default is no {field.type}") from error


def _read_default(given: Any, kind: AvroType) -> Any:
    """Return a default, as JSON has it, as Arrow takes it."""
    if type(given) not in _JSON_TYPES.get(kind.kind, (type(given),)):
        raise TypeError("another type of JSON")
    if kind.kind == "union":
        if given is None and any(branch.kind == "null" for branch in kind.inner):
            return None
        return _read_default(given, find_only(kind, ""))
    if kind.kind in ("bytes", "fixed"):
        data = given.encode("latin-1")
        if kind.kind == "fixed" and len(data) != kind.size:
            raise ValueError("another size")
        return Exact(f"{int.from_bytes(data, signed=True)}E-{kind.scale}") if kind.logical == "decimal" else data
    if kind.kind == "record":
        return {each.name: _read_default(given.get(each.name, each.default), each.type) for each in kind.fields}
    if kind.kind == "array":
        return [_read_default(each, kind.inner[0]) for each in given]
    if kind.kind == "map":
        return [(name, _read_default(each, kind.inner[0])) for name, each in given.items()]
    if kind.kind in ("int", "long"):
        return given * 1000 if kind.logical.endswith("timestamp-millis") else given
    if kind.kind in ("float", "double"):
        return float(given)
    if given is None or (kind.kind == "enum" and given not in kind.symbols):
        raise ValueError("no symbol")
    return given


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _refuse(writer: AvroType, reader: AvroType, path: str) -> UnresolvedError:
    why = f"{writer} is no {reader}"[:MOST_CHARACTERS]
    return UnresolvedError(f"field {path}: {why}" if path else why)
