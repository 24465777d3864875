"""Sampled values or keys that name the schema that wrote them, read by a schema of the registry."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from onceover.config.contract_tables import LARGEST_SCHEMA
from onceover.formats.avro.values import AvroReader
from onceover.formats.framed import HEAD, GuidHeader, SchemaName
from onceover.formats.protobuf.schema import write_file
from onceover.formats.protobuf.values import ProtobufReader, name_message
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import SCHEMA_FORMATS

SAME_FORMAT: Final = 0.9
"""The share of values that makes a format: the rest is for quarantine."""
_MOST_ASKED: Final = 20
"""Of bytes that only look like schema IDs, there may be a thousand."""

FindSchema = Callable[[SchemaName], tuple[str, str]]
"""Returns a schema's kind, such as `avro`, and its text. Raises UndecodableError for one that no value is read by."""


@dataclass(slots=True)
class RegisteredContent:
    """What a registry's schema of that kind makes of values: so many are `read`, and `rows` are their objects, None of
    one that has none. `schema` is the content of a file with that suffix, and `messages` are Protobuf's, the most
    frequent first."""

    kind: str
    schema: bytes
    suffix: str
    read: int = 0
    rows: Sequence[Mapping[str, Any] | None] = ()
    messages: Sequence[str] = ()
    doubts: list[str] = field(default_factory=list)


def name_schemas(values: Sequence[bytes | None], guids: Mapping[int, GuidHeader]) -> dict[int, SchemaName]:
    """Return what schema each value names, by its row: in the bytes before it, or by a header of `guids`."""
    framed = {
        row: int.from_bytes(value[1:HEAD])
        for row, value in enumerate(values)
        if value and len(value) >= HEAD and value[:2] == b"\0\0" and value[2:HEAD] != b"\0\0\0"
    }
    return framed | {row: header.guid for row, header in guids.items()}


def read_registered(
    values: Sequence[bytes | None], guids: Mapping[int, GuidHeader], find_schema: FindSchema
) -> RegisteredContent:
    """Read the values by the newest schema that they name, of those with GUIDs the most frequent: a topic goes from IDs
    to GUIDs, if at all. Raises UndecodableError if no contract can have any of them, and as `find_schema`."""
    often = Counter(name_schemas(values, guids).values())
    names = sorted(often, key=lambda name: (isinstance(name, str), often[name] if isinstance(name, str) else name))
    why = UndecodableError("they name no schema")
    for name in reversed(names[-_MOST_ASKED:]):
        try:
            return _read_by(name, values, guids, find_schema)
        except UndecodableError as error:
            why = error
    raise why


def find_key(
    keys: Sequence[bytes | None], guids: Mapping[int, GuidHeader], find_schema: FindSchema
) -> RegisteredContent | None:
    """Return what the keys are, None if they name no schema. Raises UndecodableError if theirs does not read most of
    them, and as `find_schema`."""
    least = SAME_FORMAT * sum(key is not None for key in keys)
    if not least or len(name_schemas(keys, guids)) < least:
        return None
    found = read_registered(keys, guids, find_schema)
    if found.read < least:
        raise UndecodableError(f"it reads {found.read:,} of {len(keys):,}" if found.read else "it reads none of them")
    return found


def _read_by(
    name: SchemaName, values: Sequence[bytes | None], guids: Mapping[int, GuidHeader], find_schema: FindSchema
) -> RegisteredContent:
    kind, text = find_schema(name)
    if kind not in SCHEMA_FORMATS:
        raise UndecodableError(f"schema {name} is one of {kind}")
    found = RegisteredContent(kind, text.encode(errors="replace"), ".avsc" if kind == "avro" else ".proto")
    if len(found.schema) > LARGEST_SCHEMA:
        raise UndecodableError(f"schema {name} has more than {LARGEST_SCHEMA >> 20} MiB, and no contract takes it")
    writers, array = _Registered(find_schema, kind), pa.array(values, pa.binary())
    try:
        if kind == "avro":
            legible = (json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n").encode()
            found.schema = legible if len(legible) <= LARGEST_SCHEMA else found.schema
            rows = AvroReader(text, writers).read(array, guids)[0]
        else:
            found.suffix, found.schema = write_file(text)
            of_schema = [row for row, named in name_schemas(values, guids).items() if named == name]
            placed = [guids[row].rest if row in guids else (values[row] or b"")[HEAD:] for row in of_schema]
            named = Counter(name_message(text, each) for each in placed)
            found.messages = [message for message, _ in named.most_common() if message]
            rows = ProtobufReader(text, found.messages[0] if found.messages else "", writers).read(array, guids)[0]
        found.read, found.rows = len(rows) - rows.null_count, list(map(_make_object, rows))
    except (RecursionError, ValueError) as error:
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


def _make_object(row: pa.Scalar) -> Any:
    try:
        return _make_plain(row.as_py())
    except (OverflowError, ValueError):  # a moment that Python does not have
        return None


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
