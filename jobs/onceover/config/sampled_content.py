"""What a topic's values are, from a sample of them, and the objects that they hold, as JSON has them.

values --compressed, wire format?--> json, csv, avro or protobuf, whose schema a registry has, text or binary
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from onceover.errors import TerminalError, UnreachableError
from onceover.formats.avro.values import AvroReader
from onceover.formats.compression import decompress
from onceover.formats.framed import HEAD, SchemaName
from onceover.formats.protobuf.schema import write_file
from onceover.formats.protobuf.values import ProtobufReader, name_message
from onceover.formats.shape import infer_type, list_columns
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import COMPRESSIONS, SCHEMA_FORMATS

_SAME_FORMAT: Final = 0.9
"""The share of values that makes a format: the rest is for quarantine."""
_SEPARATORS: Final = ",;\t|"

FindSchema = Callable[[SchemaName], tuple[str, str]]
"""Returns a schema's kind, such as `avro`, and its text. Raises UndecodableError for one that no value is read by."""


@dataclass(slots=True)
class SampledContent:
    """What the values are: `rows` are their objects, None of one that has none; text and bytes have no rows. `schema`
    is the content of a file with that suffix, and `messages` are Protobuf's, the most frequent first."""

    format: str
    rows: Sequence[Mapping[str, Any] | None] = ()
    separator: str = ","
    compression: str = "none"
    wire_format: str = "none"
    schema: bytes = b""
    suffix: str = ""
    messages: Sequence[str] = ()
    doubts: list[str] = field(default_factory=list)


def find_content(topic: str, values: Sequence[bytes], find_schema: FindSchema) -> SampledContent:
    """Return what the values are. Raises TerminalError if `find_schema` knows none of their schemas, UnreachableError
    as it does."""
    for codec in COMPRESSIONS:
        plain = [_decompress(value, codec) for value in values]
        if codec == "none" or sum(each is not None for each in plain) >= _SAME_FORMAT * len(values):
            found = _read_framed(topic, [each or b"" for each in plain], find_schema)
            if found.format != "binary":
                found.compression = codec
                return found
    return SampledContent("binary", doubts=["The values are bytes of no known format: read them by substring and hex."])


def _read_framed(topic: str, values: Sequence[bytes], find_schema: FindSchema) -> SampledContent:
    framed = [each for each in values if len(each) >= HEAD and each[:2] == b"\0\0" and each[2:HEAD] != b"\0\0\0"]
    if len(framed) < _SAME_FORMAT * len(values):
        return _read_values(values)
    found = _read_values([value[HEAD:] for value in framed])
    if found.format != "json":
        ids = sorted({int.from_bytes(value[1:HEAD]) for value in framed})
        what = (
            f"the values of topic {topic} are in Confluent's wire format, schema IDs {str(ids[:5])[1:-1]}, and no JSON"
        )
        for newest in reversed(ids[-20:]):  # of bytes that only look so, there may be a thousand
            try:
                return _read_registered(values, newest, find_schema)
            except UnreachableError as error:
                raise UnreachableError(f"{what}: {error}") from error
            except UndecodableError as error:
                why = error
        raise TerminalError(f"{what}: {why}; write the TOML as docs/formats.md shows")
    found.wire_format = "confluent"
    found.rows = [_read_object(value[HEAD:]) for value in values]
    return found


def _read_registered(values: Sequence[bytes], newest: int, find_schema: FindSchema) -> SampledContent:
    """Read values as the schema of that ID has them. Raises UndecodableError if no contract can have it."""
    kind, text = find_schema(newest)
    if kind not in SCHEMA_FORMATS:
        raise UndecodableError(f"schema {newest} is one of {kind}")
    suffix = ".avsc" if kind == "avro" else ".proto"
    found = SampledContent(kind, wire_format="confluent", schema=text.encode(), suffix=suffix)
    writers, array = _Registered(find_schema, kind), pa.array(values, pa.binary())
    try:
        if kind == "avro":
            found.schema = (json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n").encode()
            rows = AvroReader(text, writers).read(array)[0]
        else:
            found.suffix, found.schema = write_file(text)
            named = Counter(name_message(text, each) for each in values if each[:HEAD] == b"\0" + newest.to_bytes(4))
            found.messages = [name for name, _ in named.most_common() if name]
            rows = ProtobufReader(text, found.messages[0] if found.messages else "", writers).read(array)[0]
        found.rows = [row and _make_plain(row) for row in rows.to_pylist()]
    except (OverflowError, ValueError) as error:
        found.doubts.append(f"No field is chosen, for the schema cannot be read as it is: {error}.")
    return found


@dataclass(frozen=True, slots=True)
class _Registered:
    """The registry's schemas of one kind."""

    find: FindSchema
    kind: str

    def read(self, name: SchemaName) -> str:
        kind, text = self.find(name)
        if kind != self.kind:
            raise UndecodableError(f"schema {name} is one of {kind}")
        return text


def _make_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _make_plain(each) for name, each in value.items()}
    if isinstance(value, list):
        is_map = bool(value) and isinstance(value[0], tuple)
        return {k: _make_plain(v) for k, v in value} if is_map else [_make_plain(each) for each in value]
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return None if isinstance(value, bytes) else value


def _decompress(value: bytes, codec: str) -> bytes | None:
    try:
        return value if codec == "none" else decompress(value, codec)
    except UndecodableError:
        return None


def _read_values(values: Sequence[bytes]) -> SampledContent:
    least = _SAME_FORMAT * len(values)
    objects = [_read_object(value) for value in values]
    if sum(each is not None for each in objects) >= least and any(map(infer_type, list_columns(objects).values())):
        return SampledContent("json", objects)
    texts = [_read_text(value) for value in values]
    if sum(text is not None for text in texts) < least:
        return SampledContent("binary")
    for separator in _SEPARATORS:
        rows = [_split(text, separator) for text in texts]
        lengths = [len(row) for row in rows if row]
        usual = max(set(lengths), key=lengths.count) if lengths else 0
        if usual > 1 and lengths.count(usual) >= least:
            named = [dict(_name_fields(row)) if row and len(row) == usual else None for row in rows]
            doubts = ["CSV does not name its fields: rename c1, c2 and so on, in the schema and in the SQL."]
            return SampledContent("csv", named, separator, doubts=doubts)
    return SampledContent("text", doubts=["The values are text: read event time, keys and measures from it by SQL."])


def _read_object(value: bytes) -> Mapping[str, Any] | None:
    try:
        read = _parse(value.decode())
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _parse(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _read_text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _split(text: str | None, separator: str) -> list[str] | None:
    try:
        return next(csv.reader((text,), delimiter=separator, strict=True)) if text else None
    except csv.Error:
        return None


def _name_fields(row: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for number, text in enumerate(row, 1):
        try:
            value = _parse(text)
        except (ValueError, RecursionError):
            value = text or None
        is_typed = isinstance(value, int | Decimal) and text == text.strip()
        yield f"c{number}", value if is_typed else text or None
