"""The tables of a contract in a pipeline's TOML; see `pipeline_tables`."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from onceover.config.table_rules import DAY, MINUTE, TABLE, Count, Text, read_duration, require_one_of, wrong
from onceover.config.zones import list_zones, read_changes
from onceover.model.contract import BASE64, COMPRESSIONS, SCHEMA_FORMATS, WIRE_FORMATS
from onceover.model.measures import OPERATIONS, SKIPPED, Derived, Measure, split_measure
from onceover.model.pipeline import NAME, NAME_RULE
from onceover.model.windowing import DAY_MINUTES, is_window_length

MAX_KEYS = 16  # with the window's start they make one index row of PostgreSQL
_TAKEN = frozenset(
    {"window_start", "window_end", "window_ms", "revision"}
)  # each table or query of aggregates has them
_SYSTEM = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"})  # each table of PostgreSQL has them
RESERVED = _TAKEN | _SYSTEM
"""The names of our own that the rule for names takes: no key or measure may have them."""
TOPIC = r"^(\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*|\.{3,})$"  # not . and not ..
MAX_TOPIC = 249
TOPIC_RULE = "take a topic's name: at most 249 letters, digits, dots, _ and -, but not . or .."
_SCHEMA_RULE = 'list the fields with their types, such as schema = "origin STRING, dep_delay INT"'
_SCHEMA_FILE_RULE = 'put the schema beside the TOML, and name it, such as schema_file = "orders.avsc" or "orders.proto"'
LARGEST_SCHEMA = 1 << 20
_SCALE, _LARGEST_SCALE = 6, 18  # digits of an average after the point
FOLDER = "\0folder"
"""The key of the TOML's folder in a validation's context, which no TOML has."""


def _check_window_length(minutes: int | None, info: ValidationInfo) -> int:
    """Return the minutes of `window`, which the table may have instead."""
    length = info.data.get("window")
    if minutes is None:
        if length is None and "window" in info.data:  # absent if its own value is wrong
            raise wrong("missing", 'write window_minutes = 5, or window = "1d", which may have a window_zone')
        return int(length or 0) // MINUTE
    if length is not None:
        raise wrong("window is given too", "leave one of the two out")
    if not is_window_length(minutes):
        near = min((m for m in range(1, DAY_MINUTES + 1) if is_window_length(m)), key=lambda m: abs(m - minutes))
        raise wrong(f"{minutes} does not divide a day of {DAY_MINUTES} minutes", f"take {near}")
    return minutes


def _check_window(length: int | None) -> int | None:
    if length is not None and (length % MINUTE or not is_window_length(length // MINUTE)):
        raise wrong("does not divide a day into whole minutes", 'take one such as "1d", "6h", "1h" or "15m"')
    return length


def _read_zone(name: str, info: ValidationInfo) -> str:
    if info.data.get("window_minutes") and info.data.get("window", 0) is None:
        raise wrong("window_minutes are those of UTC", 'write window = "1d" in their place')
    try:
        if any(offset % 60 for _, offset in read_changes(name)):  # no file's name has seconds
            raise wrong("had offsets with seconds after 1970", "take a zone of the same clock, such as Africa/Abidjan")
    except LookupError as error:
        close = get_close_matches(name, list_zones(), n=1)
        raise wrong(str(error), f"did you mean {close[0]}?" if close else "take one such as Europe/Berlin") from None
    return name


def _require_fields(fields: Collection[str] | None, info: ValidationInfo) -> Collection[str]:
    form = info.data.get("format")  # absent if its own value is wrong
    if form in ("json", "csv") and fields is None:
        raise wrong(f"missing, and format is {form}", _SCHEMA_RULE)
    if form in ("text", "binary") and fields:
        raise wrong(f"format is {form}, which has no fields", 'leave it out, or set format = "json" or "csv"')
    if form in SCHEMA_FORMATS and fields and info.field_name == "schema":
        raise wrong(f"format is {form}, whose schema is in a file", "leave it out, and name the file by schema_file")
    return "" if fields is None else fields


def _read_schema_file(name: str | None, info: ValidationInfo) -> str:
    """Return the content of the file beside the TOML, empty without one."""
    of = "key_format" if info.field_name == "key_schema_file" else "format"
    form = info.data.get(of)  # absent if its own value is wrong
    if form in SCHEMA_FORMATS and name is None:
        raise wrong(f"missing, and {of} is {form}", _SCHEMA_FILE_RULE)
    if form is not None and form not in SCHEMA_FORMATS and name is not None:
        raise wrong(f"{of} is {form}", f'leave it out, or set {of} = "avro" or "protobuf"')
    if name is None:
        return ""
    try:
        with Path((info.context or {})[FOLDER], name).open("rb") as file:
            content = file.read(LARGEST_SCHEMA + 1)
        if len(content) > LARGEST_SCHEMA:
            raise wrong(f"{name} has more than {LARGEST_SCHEMA >> 20} MiB", "leave out fields that no SQL needs")
        is_set = form == "protobuf" and not name.endswith(".proto")
        return BASE64 + b64encode(content).decode() if is_set else content.decode()
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "not UTF-8"
        raise wrong(f"{name} cannot be read ({what})", _SCHEMA_FILE_RULE) from None


def _require_protobuf(message: str, info: ValidationInfo) -> str:
    of = "key_format" if info.field_name == "key_message" else "format"
    if message and info.data.get(of) != "protobuf":
        raise wrong(f"{of} is not protobuf", f'leave it out, or set {of} = "protobuf"')
    return message


def _require_character(value: str) -> str:
    if len(value) != 1 or value in "\r\n\0":
        raise wrong(f"{value[:80]!r} is not one character", 'write one, such as ";" or "\\t"')
    return value


def _reject_separator(quote: str, info: ValidationInfo) -> str:
    if quote == info.data.get("separator"):
        raise wrong("is the separator too", "take two characters")
    return quote


def _require_csv(table: Any, info: ValidationInfo) -> Any:
    if info.data.get("format") in ("json", "text", "binary", *SCHEMA_FORMATS):
        raise wrong(f"format is {info.data['format']}", 'take the table out, or set format = "csv"')
    return table


def _require_distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise wrong("holds a name twice", "write each name once")
    return names


def _check_column(name: str) -> str:
    if not NAME.fullmatch(name):
        raise wrong("cannot be a column's name", f"take {NAME_RULE}")
    if name in RESERVED:
        whose = "each table of aggregates" if name in _TAKEN else "each PostgreSQL table"
        raise wrong(f"{whose} already has a column of that name", "take another name")
    return name


def _reject_key(name: str, info: ValidationInfo) -> str:
    keys = (info.context or {})["contract"].get("keys")  # as written, because wrong keys have names too
    if isinstance(keys, dict) and name in keys:
        raise wrong("a key has the same name", "rename one of them")
    return name


def _read_scale(table: Any) -> Any:
    """Return the table with its scale as text."""
    if not isinstance(table, dict) or "scale" not in table:
        return table
    scale = table["scale"]
    if "avg" not in table:
        raise wrong("only an avg has a scale", "leave it out", "scale")
    if not isinstance(scale, int) or isinstance(scale, bool) or not 0 <= scale <= _LARGEST_SCALE:
        raise wrong(f"{str(scale)[:80]!r} is no number of digits", f"write one from 0 to {_LARGEST_SCALE}", "scale")
    return {**table, "scale": str(scale)}


def _check_measure(table: dict[str, str]) -> dict[str, str]:
    if len(table.keys() - {"scale"}) != 1 or not table.keys() <= {"scale", *OPERATIONS}:
        others = ", ".join(operation for operation in OPERATIONS if operation != "sum")
        raise wrong("a measure has exactly one operation", f'write {{key}} = {{ sum = "value.x" }}, or {others}')
    for operation, sql in table.items():
        if sql == "*" and operation != "count":
            raise wrong("only a count takes *", "name what to take, such as value.x", operation)
    return table


def list_measures(on_null: str, tables: Mapping[str, Mapping[str, str]]) -> tuple[list[Measure], list[Derived]]:
    """Return the measures to store, at the end those that count what the others skip, and the derived columns."""
    measures: list[Measure] = []
    derived: list[Derived] = []
    skips: list[Measure] = []
    for name, table in tables.items():
        (operation, sql), *_ = ((key, value) for key, value in table.items() if key != "scale")
        stored, of = split_measure(name, operation, sql, int(table.get("scale", _SCALE)))
        measures += stored
        derived += of
        if on_null == "skip" and sql != "*":
            skips.append(Measure(f"{name}_{SKIPPED}", SKIPPED, stored[0].name))
    return measures + skips, derived


def _reject_taken_names(tables: dict[str, dict[str, str]], info: ValidationInfo) -> dict[str, dict[str, str]]:
    written = (info.context or {})["contract"]  # wrong parts have names too
    measures, derived = list_measures(str(written.get("on_null")), tables)
    keys = written["keys"] if isinstance(written.get("keys"), dict) else ()
    names = Counter([*keys, *(each.name for each in measures), *(each.name for each in derived)])
    if twice := [name for name, columns in names.items() if columns > 1]:
        raise wrong(f"another measure keeps its parts or what it skips as {twice[0]}", "rename that column", twice[0])
    return tables


Character = Annotated[str, AfterValidator(_require_character)]
Bound = Annotated[int | None, read_duration(unless="none")]
Column = Annotated[str, AfterValidator(_check_column)]
Topic = Annotated[Text, Field(pattern=TOPIC, max_length=MAX_TOPIC, description=TOPIC_RULE)]
Measures = Annotated[
    dict[
        Annotated[Column, AfterValidator(_reject_key)],
        Annotated[dict[str, Text], BeforeValidator(_read_scale), AfterValidator(_check_measure)],
    ],
    Field(min_length=1, description='name at least one, such as records = { count = "*" }'),
    AfterValidator(_reject_taken_names),
]
Schema = Annotated[Text | None, Field(description=_SCHEMA_RULE), AfterValidator(_require_fields)]
SchemaFile = Annotated[
    str | None,
    Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$", description=_SCHEMA_FILE_RULE),
    AfterValidator(_read_schema_file),
]


MessageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.]*$"), AfterValidator(_require_protobuf)]


@dataclass(config=TABLE)
class BoundsTable:
    horizon_ms: Bound = 30 * DAY
    skew_ms: Bound = DAY


@dataclass(config=TABLE)
class CsvTable:
    separator: Character = ","
    quote: Annotated[Character, AfterValidator(_reject_separator)] = Field(default='"', validate_default=True)
    null: str = ""


@dataclass(config=TABLE)
class ContractTable:
    topic: Topic
    event_time: Annotated[Text, Field(description="write SQL such as to_timestamp(value.at)")]
    measures: Measures
    window: Annotated[int | None, AfterValidator(_check_window), read_duration("1m")] = None
    window_minutes: Annotated[Count | None, AfterValidator(_check_window_length)] = Field(
        default=None, validate_default=True
    )
    window_zone: Annotated[Text | None, AfterValidator(_read_zone)] = None
    format: Annotated[Text, require_one_of(("json", "csv", *sorted(SCHEMA_FORMATS), "text", "binary"))] = "json"
    compression: Annotated[Text, require_one_of(COMPRESSIONS)] = "none"
    wire_format: Annotated[Text, require_one_of(WIRE_FORMATS)] = "none"
    csv: Annotated[CsvTable, BeforeValidator(_require_csv)] = Field(default_factory=CsvTable)
    schema: Schema = Field(default=None, validate_default=True)
    schema_file: SchemaFile = Field(default=None, validate_default=True)
    message: MessageName = ""
    key_format: Annotated[Text, require_one_of(("text", *sorted(SCHEMA_FORMATS)))] = "text"
    key_schema_file: SchemaFile = Field(default=None, validate_default=True)
    key_message: MessageName = ""
    required: Annotated[tuple[Text, ...], AfterValidator(_require_distinct), AfterValidator(_require_fields)] = ()
    tombstone: Annotated[Text, require_one_of(("quarantine", "record"))] = "quarantine"
    keys: dict[Column, Text] = Field(default_factory=dict, max_length=MAX_KEYS)
    on_null: Annotated[Text, require_one_of(("quarantine", "skip"))] = "quarantine"
    bounds: BoundsTable = Field(default_factory=BoundsTable)
