"""A first contract for a topic, from a sample of its records: what they show, with a mark at what is a guess.

values --compressed, wire format?--> json, csv, text or binary --> schema --> event time, keys, measures
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from typing import Any, Final

from onceover.config.avro_draft import read_sample
from onceover.config.contract_tables import RESERVED
from onceover.errors import TerminalError
from onceover.formats.compression import decompress
from onceover.formats.event_times import EventTime, find_event_times
from onceover.formats.shape import Field, infer_type, list_columns, list_fields, quote
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import COMPRESSIONS
from onceover.model.wording import pluralize

_MOST_KEYS, _MOST_MEASURES = 3, 5
_MOST_GROUPS: Final = 50
"""Different values of a field that may be a key."""
_LONGEST_KEY: Final = 100
_SAME_FORMAT: Final = 0.9
"""The share of values that makes a format: the rest is for quarantine."""
_SEPARATORS: Final = ",;\t|"
_DAY_MS: Final = 86_400_000
_LARGEST_SUMMED: Final = 10**22
"""DECIMAL(28, 6) has no room for a larger number."""
_ID: Final = re.compile(r"(?:^|_)(?:id|no|nr|number|zip|code|version)$|[a-z]I[dD]$")


class WireFormatError(TerminalError):
    """Values that a serializer wrote which knows a schema registry."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of a TOML, what it could not know, a sentence each, and the text of an Avro schema beside it."""

    toml: str
    doubts: tuple[str, ...]
    schema: str = ""


@dataclass(slots=True)
class _Content:
    """What the values are: `rows` are the objects of json, csv and avro, None for other values."""

    format: str
    rows: Sequence[Mapping[str, Any] | None] = ()
    separator: str = ","
    compression: str = "none"
    wire_format: str = "none"
    schema: str = ""
    doubts: list[str] = field(default_factory=list)


def draft_pipeline(
    topic: str,
    values: Sequence[bytes | None],
    stamps: Sequence[int],
    kafka: Mapping[str, str],
    schema_file: str = "",
    find_schema: Callable[[int], str] | None = None,
) -> Draft:
    """Return a draft for the topic of these values, with Kafka's times in ms and a client's properties. Avro's schema,
    which `find_schema` returns by its ID, goes to `schema_file`. Raises TerminalError for values that no contract
    reads, and if there are none."""
    present = [(value, stamp) for value, stamp in zip(values, stamps, strict=True) if value is not None]
    if not present:
        raise TerminalError(f"topic {topic} has no record with a value to look at: produce some first")
    try:
        found = _find_format(topic, [value for value, _ in present], find_schema)
        columns = list_columns(found.rows)
        kinds = {name: infer_type(column) or (found.format == "csv" and "STRING") for name, column in columns.items()}
        fields = list(list_fields(found.rows))
    except RecursionError as error:
        raise TerminalError(f"the values of topic {topic} are nested too deeply for a schema: write one") from error
    names = dict.fromkeys(name for row in found.rows for name, value in (row or {}).items() if value is not None)
    left_out = [ascii(name)[:60] for name in names if not kinds.get(name)]
    if left_out and not found.schema:
        found.doubts.append(f"Left out, for no type takes all values, or a name is not fit: {', '.join(left_out)}.")
    readable = [at for at, row in enumerate(found.rows) if row is not None]
    fields = [replace(each, values=[each.values[at] for at in readable]) for each in fields]
    times = find_event_times(fields, [present[at][1] for at in readable])
    schema = [f"{quote(name)} {kind}" for name, kind in kinds.items() if kind and not found.schema]
    lines = [
        f"# Drafted from {pluralize(len(values), 'record')} of the topic. What says `guess` is for you to decide.",
        "[contract]",
        f"topic = {_quote(topic)}",
        "window_minutes = 5  # guess",
        f"format = {_quote(found.format)}",
        *([f"compression = {_quote(found.compression)}"] if found.compression != "none" else []),
        *([f"wire_format = {_quote(found.wire_format)}"] if found.wire_format != "none" else []),
        *([f"schema_file = {_quote(schema_file)}"] if found.schema else []),
        *(['schema = """', ",\n".join(f"  {_quote(each)[1:-1]}" for each in schema), '"""'] if schema else []),
        *_write_event_time(found, times),
        *(["[contract.csv]", f"separator = {_quote(found.separator)}"] if found.format == "csv" else []),
        *_write_columns(fields, times),
        *_write_bounds(found, times[:1]),
        *(["[kafka]", *(f"{_quote(name)} = {_quote(value)}" for name, value in kafka.items())] if kafka else []),
    ]
    return Draft("\n".join(lines) + "\n", tuple(found.doubts), found.schema)


def _write_event_time(found: _Content, times: Sequence[EventTime]) -> Iterator[str]:
    if not times:
        yield 'event_time = "kafka_timestamp"  # guess'
        if found.rows:
            found.doubts.append("No field has a time in nearly every record: event time is Kafka's.")
        return
    others = [each.sql for each in times[1:4]]
    yield f"required = [{_quote('.'.join(map(quote, times[0].field.path)))}]"
    yield f"event_time = {_quote(times[0].sql)}  # guess{': or ' if others else ''}{', '.join(others)}"
    if others:
        found.doubts.append(f"Event time is {times[0].sql}, the nearest to Kafka's; it might be {' or '.join(others)}.")


def _write_columns(fields: Sequence[Field], times: Sequence[EventTime]) -> Iterator[str]:
    taken = {"records", *RESERVED}
    others = [each for each in fields if not any(each is time.field for time in times)]
    groups = [(each, _count_groups(each)) for each in others if each.type in ("STRING", "BOOLEAN")]
    keys = sorted((each for each in groups if each[1]), key=lambda each: each[1])[:_MOST_KEYS]
    if keys:
        yield "[contract.keys]"
    for each, groups_of in keys:
        yield f"{_name_column(each, taken)} = {_quote(each.sql)}  # guess: {groups_of} different values"
    yield "[contract.measures]"
    yield 'records = { count = "*" }'
    sums = [each for each in others if _is_summed(each)]
    for each in sums[:_MOST_MEASURES]:
        sql = each.sql if each.type == "BIGINT" else f"CAST({each.sql} AS DECIMAL(28, 6))"
        yield f"{_name_column(each, taken)} = {{ sum = {_quote(sql)} }}  # guess"


def _is_summed(each: Field) -> bool:
    is_small = each.type == "DOUBLE" and all(abs(value) < _LARGEST_SUMMED for value in each.values if value is not None)
    return (each.type == "BIGINT" or is_small) and not _ID.search(each.path[-1])


def _count_groups(each: Field) -> int:
    """Return how many different values the field has; 0 if they are too many, too long or too few for a key."""
    texts = [str(value) for value in each.values if value is not None]
    different = len(set(texts))
    is_fit = 1 < different <= min(_MOST_GROUPS, len(texts) // 2) and len(max(texts, key=len)) < _LONGEST_KEY
    return different if is_fit else 0


def _write_bounds(found: _Content, times: Sequence[EventTime]) -> Iterator[str]:
    unbounded = [name for time in times for name in _find_unbounded(time)]
    if unbounded:
        yield "[contract.bounds]"
        found.doubts.append("Event times are far from Kafka's, as in a replay: the contract has no bound.")
    for name in unbounded:
        yield f'{name} = "none"  # guess: event times of the sample are far from Kafka\'s'


def _find_unbounded(time: EventTime) -> Iterator[str]:
    if time.before_ms > 15 * _DAY_MS:
        yield "horizon"
    if time.after_ms > _DAY_MS // 2:
        yield "skew"


def _name_column(each: Field, taken: set[str]) -> str:
    """Return a column's name of the field's, and add it to those that are taken."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each.path[-1]).lower()
    name = re.sub(r"[^a-z0-9_]+", "_", snake).strip("_").lstrip("_0123456789")[:36] or "field"
    free = next(new for n in count(1) if (new := name if n == 1 else f"{name}_{n}") not in taken)
    taken.add(free)
    return free


def _quote(text: str) -> str:
    """Return the text as a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _find_format(topic: str, values: Sequence[bytes], find_schema: Callable[[int], str] | None) -> _Content:
    for codec in COMPRESSIONS:
        plain = [_decompress(value, codec) for value in values]
        if codec == "none" or sum(each is not None for each in plain) >= _SAME_FORMAT * len(values):
            found = _read_framed(topic, [each or b"" for each in plain], find_schema)
            if found.format != "binary":
                found.compression = codec
                return found
    return _Content("binary", doubts=["The values are bytes of no known format: read them by substring and hex."])


def _read_framed(topic: str, values: Sequence[bytes], find_schema: Callable[[int], str] | None) -> _Content:
    framed = [each for each in values if len(each) >= 5 and each[:2] == b"\0\0" and each[2:5] != b"\0\0\0"]
    if len(framed) < _SAME_FORMAT * len(values):
        return _read_values(values)
    found = _read_values([value[5:] for value in framed])
    if found.format != "json" and find_schema is not None:
        sample = read_sample(values, find_schema)
        doubts = [sample.doubt] if sample.doubt else []
        return _Content("avro", sample.rows, wire_format="confluent", schema=sample.schema, doubts=doubts)
    if found.format != "json":
        numbers = ", ".join(map(str, sorted({int.from_bytes(value[1:5]) for value in framed})[:5]))
        raise WireFormatError(
            f"the values of topic {topic} are in Confluent's wire format, schema IDs {numbers}, and no JSON: probably "
            "Avro or Protobuf. For Avro, name its schema registry by ONCEOVER_REGISTRY and run the command again; for "
            "Protobuf, write the TOML as docs/formats.md shows"
        )
    found.wire_format = "confluent"
    found.rows = [_read_object(value[5:]) for value in values]
    return found


def _decompress(value: bytes, codec: str) -> bytes | None:
    try:
        return value if codec == "none" else decompress(value, codec)
    except UndecodableError:
        return None


def _read_values(values: Sequence[bytes]) -> _Content:
    least = _SAME_FORMAT * len(values)
    objects = [_read_object(value) for value in values]
    if sum(each is not None for each in objects) >= least and any(map(infer_type, list_columns(objects).values())):
        return _Content("json", objects)
    texts = [_read_text(value) for value in values]
    if sum(text is not None for text in texts) < least:
        return _Content("binary")
    for separator in _SEPARATORS:
        rows = [_split(text, separator) for text in texts]
        lengths = [len(row) for row in rows if row]
        usual = max(set(lengths), key=lengths.count) if lengths else 0
        if usual > 1 and lengths.count(usual) >= least:
            named = [dict(_name_fields(row)) if row and len(row) == usual else None for row in rows]
            doubts = ["CSV does not name its fields: rename c1, c2 and so on, in the schema and in the SQL."]
            return _Content("csv", named, separator, doubts=doubts)
    return _Content("text", doubts=["The values are text: read event time, keys and measures from it by SQL."])


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
