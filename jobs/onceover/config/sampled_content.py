"""What a topic's values are, from a sample of them, and the objects that they hold, as JSON has them.

values --compressed, wire format?--> json, csv, avro or protobuf, whose schema a registry has, text or binary
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from onceover.config.registered_content import (
    SAME_FORMAT,
    FindSchema,
    RegisteredContent,
    name_schemas,
    read_registered,
)
from onceover.errors import TerminalError, UnreachableError
from onceover.formats.compression import decompress
from onceover.formats.framed import HEAD, GuidHeader
from onceover.formats.shape import infer_type, list_columns
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import COMPRESSIONS

_SEPARATORS: Final = ",;\t|"


@dataclass(slots=True)
class SampledContent:
    """What the values are: `rows` are their objects, None of one that has none; text and bytes have no rows."""

    format: str
    rows: Sequence[Mapping[str, Any] | None] = ()
    separator: str = ","
    compression: str = "none"
    wire_format: str = "none"
    registered: RegisteredContent | None = None
    doubts: list[str] = field(default_factory=list)


def find_content(
    topic: str, values: Sequence[bytes], guids: Mapping[int, GuidHeader], find_schema: FindSchema
) -> SampledContent:
    """Return what the values are, whose headers name the schemas of `guids`, by row. Raises TerminalError if
    `find_schema` knows none of their schemas, UnreachableError as it does."""
    for codec in sorted(COMPRESSIONS, key="none".__eq__) if guids else COMPRESSIONS:  # headers frame any bytes
        plain = [_decompress(value, codec) for value in values]
        if codec == "none" or sum(each is not None for each in plain) >= SAME_FORMAT * len(values):
            found = _read_framed(topic, [each or b"" for each in plain], guids, find_schema)
            if found.format != "binary":
                found.compression = codec
                return found
    return SampledContent("binary", doubts=["The values are bytes of no known format: read them by substring and hex."])


def _read_framed(
    topic: str, values: Sequence[bytes], guids: Mapping[int, GuidHeader], find_schema: FindSchema
) -> SampledContent:
    named = name_schemas(values, guids)
    if len(named) < SAME_FORMAT * len(values):
        return _read_values(values)
    payloads = [value if row in guids else value[HEAD:] for row, value in enumerate(values)]
    found = _read_values([payloads[row] for row in named])
    if found.format == "json":
        found.wire_format = "none" if len(guids) > len(named) / 2 else "confluent"
        found.rows = list(map(_read_object, payloads))
        return found
    names = str(sorted(set(named.values()), key=lambda name: (isinstance(name, str), name))[:5])[1:-1]
    what = f"the values of topic {topic} are in Confluent's wire format, schemas {names}, and no JSON"
    try:
        registered = read_registered(values, guids, find_schema)
    except UnreachableError as error:
        raise UnreachableError(f"{what}: {error}") from error
    except UndecodableError as error:
        raise TerminalError(f"{what}: {error}; write the TOML as docs/formats.md shows") from error
    return SampledContent(
        registered.kind,
        registered.rows,
        wire_format="confluent",
        registered=registered,
        doubts=registered.doubts,
    )


def _decompress(value: bytes, codec: str) -> bytes | None:
    try:
        return value if codec == "none" else decompress(value, codec)
    except UndecodableError:
        return None


def _read_values(values: Sequence[bytes]) -> SampledContent:
    least = SAME_FORMAT * len(values)
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
