"""A first contract for a topic, from a sample of its records: what they show, with a mark at what is a guess."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import pyarrow as pa

from onceover.config.contract_tables import RESERVED
from onceover.config.registered_content import FindSchema, RegisteredContent, find_key
from onceover.config.sampled_content import SampledContent, find_content
from onceover.errors import TerminalError, UnreachableError
from onceover.formats.event_times import EventTime, find_event_times
from onceover.formats.framed import find_guids
from onceover.formats.shape import Field, infer_type, list_columns, list_fields, quote
from onceover.formats.undecodable import UndecodableError
from onceover.model.wording import pluralize

_MOST_KEYS, _MOST_MEASURES = 3, 5
_MOST_GROUPS: Final = 50
"""Different values of a field that may be a key."""
_LONGEST_KEY: Final = 100
_DAY_MS: Final = 86_400_000
_LARGEST_SUMMED: Final = 10**22
"""DECIMAL(28, 6) has no room for a larger number."""
_ID: Final = re.compile(r"(?:^|_)(?:id|no|nr|number|zip|code|version)$|[a-z]I[dD]$")


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of a TOML, what it could not know, a sentence each, and the schemas of a registry for files beside it,
    by their names."""

    toml: str
    doubts: tuple[str, ...]
    schema_files: Mapping[str, bytes]


def draft_pipeline(
    topic: str, records: pa.Table, kafka: Mapping[str, str], name: str, find_schema: FindSchema
) -> Draft:
    """Return a draft of that name for the topic of these records, as a reader returns them, and a client's properties.
    `find_schema` asks a registry. Raises TerminalError for values that no contract reads, and if there are none."""
    present = records.filter(records.column("value").is_valid())
    if not present.num_rows:
        raise TerminalError(f"topic {topic} has no record with a value to look at: produce some first")
    stamps = present.column("kafka_timestamp").to_pylist()
    try:
        guids = find_guids(present.column("headers"), "value")
        found = find_content(topic, present.column("value").to_pylist(), guids, find_schema)
        columns = list_columns(found.rows)
        kinds = {each: infer_type(column) or (found.format == "csv" and "STRING") for each, column in columns.items()}
        fields = list(list_fields(found.rows))
    except RecursionError as error:
        raise TerminalError(f"the values of topic {topic} are nested too deeply for a schema: write one") from error
    names = dict.fromkeys(each for row in found.rows for each, value in (row or {}).items() if value is not None)
    left_out = [ascii(each)[:60] for each in names if not kinds.get(each)]
    if left_out and not found.registered:
        found.doubts.append(f"Left out, for no type takes all values, or a name is not fit: {', '.join(left_out)}.")
    readable = [at for at, row in enumerate(found.rows) if row is not None]
    fields = [replace(each, values=[each.values[at] for at in readable]) for each in fields]
    times = find_event_times(fields, [stamps[at] for at in readable])
    schema = [f"{quote(each)} {kind}" for each, kind in kinds.items() if kind and not found.registered]
    key = _find_key(records, found, find_schema)
    if records.num_rows > present.num_rows:
        tombstones = f"{pluralize(records.num_rows - present.num_rows, 'tombstone')} among {records.num_rows:,} records"
        found.doubts.append(f'{tombstones}: without tombstone = "record" they go to quarantine.')
    files = {f"{file}{each.suffix}": each for file, each in ((name, found.registered), (f"{name}_key", key)) if each}
    lines = [
        f"# Drafted from {pluralize(len(records), 'record')} of the topic. What says `guess` is for you to decide.",
        "[contract]",
        f"topic = {_quote(topic)}",
        "window_minutes = 5  # guess",
        f"format = {_quote(found.format)}",
        *([f"compression = {_quote(found.compression)}"] if found.compression != "none" else []),
        *([f"wire_format = {_quote(found.wire_format)}"] if found.wire_format != "none" else []),
        *_write_schema(found.registered, name),
        *(['schema = """', ",\n".join(f"  {_quote(each)[1:-1]}" for each in schema), '"""'] if schema else []),
        *([f"# key_format = {_quote(key.kind)}  # guess: if SQL needs fields of `key`"] if key else []),
        *(f"# key_{line}" for line in _write_schema(key, f"{name}_key")),
        *_write_event_time(found, times),
        *(["[contract.csv]", f"separator = {_quote(found.separator)}"] if found.format == "csv" else []),
        *_write_columns(fields, times),
        *_write_bounds(found, times[:1]),
        *(["[kafka]", *(f"{_quote(each)} = {_quote(value)}" for each, value in kafka.items())] if kafka else []),
    ]
    return Draft("\n".join(lines) + "\n", tuple(found.doubts), {file: each.schema for file, each in files.items()})


def _find_key(records: pa.Table, found: SampledContent, find_schema: FindSchema) -> RegisteredContent | None:
    if found.wire_format == "none":
        return None
    try:
        return find_key(records.column("key").to_pylist(), find_guids(records.column("headers"), "key"), find_schema)
    except (UndecodableError, UnreachableError) as error:
        found.doubts.append(f"Keys seem to name a registry's schema, and stay text: {error}.")
        return None


def _write_schema(content: RegisteredContent | None, file: str) -> Iterator[str]:
    if content:
        yield f"schema_file = {_quote(f'{file}{content.suffix}')}"
        if names := content.messages:
            others = f"  # guess: or {', '.join(names[1:4])}" if names[1:] else ""
            yield f"message = {_quote(names[0])}{others}"


def _write_event_time(found: SampledContent, times: Sequence[EventTime]) -> Iterator[str]:
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


def _write_bounds(found: SampledContent, times: Sequence[EventTime]) -> Iterator[str]:
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
