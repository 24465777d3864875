"""The tables of a pipeline's TOML: their keys, defaults and allowed values.

A field is named for its key in the file, durations with `_ms` at the end; its description is the remedy for a missing
or wrong value. Rules across keys are validators of the later key, so that one pass finds all mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationInfo
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from onceover.config.duration import DURATION_RULE, parse_duration
from onceover.config.kafka_properties import explain_bad_value, explain_refusal
from onceover.config.mistakes import suggest_name
from onceover.config.raw_stores import list_raw_stores
from onceover.model.batch_plan import SHARDING
from onceover.model.contract import COMPRESSIONS, WIRE_FORMATS
from onceover.model.measures import OPERATIONS, SKIPPED
from onceover.model.pipeline import NAME, NAME_RULE, OFFSET_STORES, SINKS
from onceover.model.window import DAY_MINUTES, is_window_length

MAX_KEYS = 16  # with the window's start they make one index row of PostgreSQL
_TAKEN = frozenset(
    {"window_start", "window_end", "window_ms", "revision"}
)  # each table or query of aggregates has them
_SYSTEM = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"})  # each table of PostgreSQL has them
RESERVED = _TAKEN | _SYSTEM
"""The names of our own that the rule for names takes: no key or measure may have them."""
_PATH = r"^(/(\.*[A-Za-z0-9_=-][A-Za-z0-9_.=-]*|\.{3,}))+$"  # no . and no .. in it
_PATH_RULE = "take an absolute path such as {}, without hdfs://, spaces, //, /./, /../ or a / at the end"
TOPIC = r"^(\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*|\.{3,})$"  # not . and not ..
MAX_TOPIC = 249
TOPIC_RULE = "take a topic's name: at most 249 letters, digits, dots, _ and -, but not . or .."
_SCHEMA_RULE = 'list the fields with their types, such as schema = "origin STRING, dep_delay INT"'
_SCHEMA_FILE_RULE = 'put the Avro schema beside the TOML, and name it, such as schema_file = "orders.avsc"'
_LARGEST_SCHEMA = 1 << 20
FOLDER = "\0folder"
"""The key of the TOML's folder in a validation's context, which no TOML has."""
_SECOND, _HOUR, _DAY = 1_000, 3_600_000, 86_400_000
_CONFIG = ConfigDict(extra="forbid", alias_generator=lambda name: name.removesuffix("_ms"))


def _wrong(what: str, remedy: str, within: str = "") -> PydanticCustomError:
    """Return the error for a value, or for a key within it; `{key}` in the remedy becomes the value's own key."""
    return PydanticCustomError("mistake", "{what}; {remedy}", {"what": what, "remedy": remedy, "within": within})


def _require_one_of(choices: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise _wrong(f"{value[:80]!r} is not one of {', '.join(choices)}", suggest_name(value, tuple(choices)))
        return value

    return AfterValidator(check)


def _require_raw_store(value: str) -> str:
    if value not in (stores := list_raw_stores()):
        more = "; a store of your own needs ONCEOVER_RAW_STORES, see docs/raw-stores.md"
        raise _wrong(f"{value[:80]!r} is no raw store", suggest_name(value, tuple(stores)) + more)
    return value


def _read_duration(least: str = "0s", unless: str | None = None) -> BeforeValidator:
    """Return a validator from a written duration to milliseconds; to None for the word `unless`."""

    def check(value: Any) -> int | None:
        if value == unless:
            return None
        length = parse_duration(value) if isinstance(value, str) else None
        if length is None:
            raise _wrong(f"{str(value)[:80]!r} is not a duration", DURATION_RULE)
        if length < (parse_duration(least) or 0):
            raise _wrong(f"{value[:80]!r} is too short", f'take at least "{least}"')
        return length

    return BeforeValidator(check)


def _check_window_length(minutes: int) -> int:
    if not is_window_length(minutes):
        near = min((m for m in range(1, DAY_MINUTES + 1) if is_window_length(m)), key=lambda m: abs(m - minutes))
        raise _wrong(f"{minutes} does not divide a day of {DAY_MINUTES} minutes", f"take {near}")
    return minutes


def _require_fields(fields: Collection[str] | None, info: ValidationInfo) -> Collection[str]:
    form = info.data.get("format")  # absent if its own value is wrong
    if form in ("json", "csv") and fields is None:
        raise _wrong(f"missing, and format is {form}", _SCHEMA_RULE)
    if form in ("text", "binary") and fields:
        raise _wrong(f"format is {form}, which has no fields", 'leave it out, or set format = "json" or "csv"')
    if form == "avro" and fields and info.field_name == "schema":
        raise _wrong("format is avro, whose schema is in a file", "leave it out, and name the file by schema_file")
    return "" if fields is None else fields


def _read_schema_file(name: str | None, info: ValidationInfo) -> str:
    """Return the content of the file beside the TOML, empty without one."""
    form = info.data.get("format")
    if form == "avro" and name is None:
        raise _wrong("missing, and format is avro", _SCHEMA_FILE_RULE)
    if form in ("json", "csv", "text", "binary") and name is not None:
        raise _wrong(f"format is {form}", 'leave it out, or set format = "avro"')
    if name is None:
        return ""
    try:
        with Path((info.context or {})[FOLDER], name).open("rb") as file:
            content = file.read(_LARGEST_SCHEMA + 1)
        if len(content) > _LARGEST_SCHEMA:
            raise _wrong(f"{name} has more than {_LARGEST_SCHEMA >> 20} MiB", _SCHEMA_FILE_RULE)
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "not UTF-8"
        raise _wrong(f"{name} cannot be read ({what})", _SCHEMA_FILE_RULE) from None


def _require_character(value: str) -> str:
    if len(value) != 1 or value in "\r\n\0":
        raise _wrong(f"{value[:80]!r} is not one character", 'write one, such as ";" or "\\t"')
    return value


def _reject_separator(quote: str, info: ValidationInfo) -> str:
    if quote == info.data.get("separator"):
        raise _wrong("is the separator too", "take two characters")
    return quote


def _require_csv(table: Any, info: ValidationInfo) -> Any:
    if info.data.get("format") in ("json", "text", "binary", "avro"):
        raise _wrong(f"format is {info.data['format']}", 'take the table out, or set format = "csv"')
    return table


def _require_distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise _wrong("holds a name twice", "write each name once")
    return names


def _check_column(name: str) -> str:
    if not NAME.fullmatch(name):
        raise _wrong("cannot be a column's name", f"take {NAME_RULE}")
    if name in RESERVED:
        whose = "each table of aggregates" if name in _TAKEN else "each PostgreSQL table"
        raise _wrong(f"{whose} already has a column of that name", "take another name")
    return name


def _reject_key(name: str, info: ValidationInfo) -> str:
    keys = (info.context or {})["contract"].get("keys")  # as written, because wrong keys have names too
    if isinstance(keys, dict) and name in keys:
        raise _wrong("a key has the same name", "rename one of them")
    return name


def _check_measure(table: dict[str, str]) -> dict[str, str]:
    if len(table) != 1 or not table.keys() <= set(OPERATIONS):
        others = ", ".join(operation for operation in OPERATIONS if operation != "sum")
        raise _wrong("a measure has exactly one operation", f'write {{key}} = {{ sum = "value.x" }}, or {others}')
    for operation, sql in table.items():
        if sql == "*" and operation != "count":
            raise _wrong("only a count takes *", "name what to take, such as value.x", operation)
    return table


def list_skipped_measures(on_null: str, measures: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return name, operation and SQL of the measures that count what the others skip."""
    if on_null != "skip":
        return []
    return [(f"{name}_{SKIPPED}", SKIPPED, name) for name, one in measures.items() if "*" not in one.values()]


def _reject_taken_skips(on_null: str, info: ValidationInfo) -> str:
    taken = {**info.data.get("measures", {}), **info.data.get("keys", {})}
    for name, _, measure in list_skipped_measures(on_null, info.data.get("measures", {})):
        if name in taken:
            raise _wrong(f"counts what {measure} skips as {name}, and a column has that name", "rename that column")
    return on_null


def check_offset_path(store: str, path: str) -> str | None:
    """Return what is wrong with that path for that offset store, else None. Only stores that keep files have a path."""
    if not path:
        return "a checkpoint needs its path on HDFS" if store == "checkpoint" else None
    if store not in ("file", "hdfs", "checkpoint"):
        return f"offset store {store} has no path"
    return None if re.fullmatch(_PATH, path) else f"{path[:80]!r} is not valid"


def _parse_offset_path(path: str | None, info: ValidationInfo) -> str:
    store = info.data.get("offset_store")  # absent if its own value is wrong
    if store and (what := check_offset_path(store, path or "")):
        raise _wrong(what, f"{_PATH_RULE.format('/checkpoints/flights')}, or leave it out")
    return path or ""


def _flatten(values: Any, prefix: str = "") -> Any:
    """Join nested names with dots: TOML reads `security.protocol = ...` as a table in a table."""
    if not isinstance(values, dict):
        return values
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _check_property(name: str) -> str:
    if why := explain_refusal(name):
        raise _wrong(*why)
    return name


def _check_values(properties: dict[str, str]) -> dict[str, str]:
    for name, value in properties.items():
        if why := explain_bad_value(name, value):
            raise _wrong(*why, name)
    return properties


def _format_property(value: Any) -> str:
    if not isinstance(value, str | int):
        raise _wrong("is not a string, a number or a boolean", "write it as a string")
    return str(value).lower() if isinstance(value, bool) else str(value)


Character = Annotated[str, AfterValidator(_require_character)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Field(strict=True, ge=1, lt=2**31, description="write a number from 1, below 2^31")]
Bound = Annotated[int | None, _read_duration(unless="none")]
Column = Annotated[str, AfterValidator(_check_column)]
Topic = Annotated[Text, Field(pattern=TOPIC, max_length=MAX_TOPIC, description=TOPIC_RULE)]
Group = Annotated[Text, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$", description="take letters, digits, dots, _ and -")]
Measures = Annotated[
    dict[Annotated[Column, AfterValidator(_reject_key)], Annotated[dict[str, Text], AfterValidator(_check_measure)]],
    Field(min_length=1, description='name at least one, such as records = { count = "*" }'),
]
Schema = Annotated[Text | None, Field(description=_SCHEMA_RULE), AfterValidator(_require_fields)]
SchemaFile = Annotated[
    str | None,
    Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$", description=_SCHEMA_FILE_RULE),
    AfterValidator(_read_schema_file),
]
Property = Annotated[str, AfterValidator(_check_property)]
PropertyText = Annotated[str, BeforeValidator(_format_property)]
RawStoreName = Annotated[Text, AfterValidator(_require_raw_store)]
RawRoot = Annotated[Text, Field(pattern=_PATH, description=_PATH_RULE.format("/onceover/raw"))]


@dataclass(config=_CONFIG)
class BoundsTable:
    horizon_ms: Bound = 30 * _DAY
    skew_ms: Bound = _DAY


@dataclass(config=_CONFIG)
class CsvTable:
    separator: Character = ","
    quote: Annotated[Character, AfterValidator(_reject_separator)] = Field(default='"', validate_default=True)
    null: str = ""


@dataclass(config=_CONFIG)
class ContractTable:
    topic: Topic
    window_minutes: Annotated[Count, AfterValidator(_check_window_length)]
    event_time: Annotated[Text, Field(description="write SQL such as to_timestamp(value.at)")]
    measures: Measures
    format: Annotated[Text, _require_one_of(("json", "csv", "avro", "text", "binary"))] = "json"
    compression: Annotated[Text, _require_one_of(COMPRESSIONS)] = "none"
    wire_format: Annotated[Text, _require_one_of(WIRE_FORMATS)] = "none"
    csv: Annotated[CsvTable, BeforeValidator(_require_csv)] = Field(default_factory=CsvTable)
    schema: Schema = Field(default=None, validate_default=True)
    schema_file: SchemaFile = Field(default=None, validate_default=True)
    required: Annotated[tuple[Text, ...], AfterValidator(_require_distinct), AfterValidator(_require_fields)] = ()
    tombstone: Annotated[Text, _require_one_of(("quarantine", "record"))] = "quarantine"
    keys: dict[Column, Text] = Field(default_factory=dict, max_length=MAX_KEYS)
    on_null: Annotated[Text, _require_one_of(("quarantine", "skip")), AfterValidator(_reject_taken_skips)] = (
        "quarantine"
    )
    bounds: BoundsTable = Field(default_factory=BoundsTable)


@dataclass(config=_CONFIG)
class IngestTable:
    allowed_lateness_ms: Annotated[int, _read_duration()] = _HOUR
    idle_after_ms: Annotated[int, _read_duration("1ms")] = 30 * _SECOND
    interval_ms: Annotated[int, _read_duration("1ms")] = 2 * _SECOND
    max_records_per_batch: Count = 200_000
    offset_store: Annotated[Text, _require_one_of(OFFSET_STORES)] = "postgres"
    offset_path: Annotated[Text | None, AfterValidator(_parse_offset_path)] = Field(default=None, validate_default=True)
    group: Group = ""  # onceover-NAME
    isolation: Annotated[Text, _require_one_of(("read_committed", "read_uncommitted"))] = "read_committed"
    first_start: Annotated[Text, _require_one_of(("earliest", "latest"))] = "earliest"
    rate_control: Annotated[Text, _require_one_of(("none", "pid"))] = "none"
    start_rate: Annotated[int, Field(strict=True, ge=51, le=999, description="write a number from 51 to 999")] = 500
    min_rate: Count = 100
    share: Annotated[Text, _require_one_of(("fair", "plain"))] = "fair"
    sharding: Annotated[Text, _require_one_of(SHARDING)] = "backlog"
    sink: Annotated[Text, _require_one_of(SINKS)] = "append"


@dataclass(config=_CONFIG)
class StorageTable:
    raw_store: RawStoreName = "hdfs"
    raw_root: RawRoot = "/onceover/raw"
    retention_ms: Annotated[int | None, _read_duration("1d", unless="none")] = None


@dataclass(config=_CONFIG)
class RepairTable:
    max_tries: Count = 3
    deadline_ms: Annotated[int | None, _read_duration("1ms", unless="none")] = None
    eager: Annotated[bool, Field(strict=True)] = False


@dataclass(config=_CONFIG)
class PipelineTable:
    contract: ContractTable
    ingest: IngestTable = Field(default_factory=IngestTable)
    storage: StorageTable = Field(default_factory=StorageTable)
    repair: RepairTable = Field(default_factory=RepairTable)
    kafka: Annotated[dict[Property, PropertyText], BeforeValidator(_flatten), AfterValidator(_check_values)] = Field(
        default_factory=dict
    )
