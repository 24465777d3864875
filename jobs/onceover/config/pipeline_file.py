"""How a pipeline's TOML is read: every mistake is named, with file, key and remedy, before anything starts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onceover.config.kafka_properties import refusal
from onceover.config.mistakes import Mistake, MistakesError
from onceover.config.toml_table import Table
from onceover.model.batch_plan import SHARDING
from onceover.model.contract import OPERATIONS, Contract, Key, Measure
from onceover.model.pipeline import NAME, NAME_RULE, OFFSET_STORES, IngestPolicy, Pipeline, RepairPolicy, StoragePolicy
from onceover.model.window import DAY_MINUTES, is_window_length

MAX_KEYS = 16  # with the window's start they are one index row of PostgreSQL
_TAKEN = frozenset(
    {"window_start", "window_end", "window_ms", "revision"}
)  # every table or query of aggregates has them
_SYSTEM = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"})  # every table of PostgreSQL has them
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_GROUP = re.compile(r"[a-zA-Z0-9._-]{1,200}")
_PATH = re.compile(r"(/[A-Za-z0-9_.=-]+)+")
_PATH_RULE = "an absolute path such as {}, without hdfs://, spaces, // or a / at the end"


def read(path: Path) -> Pipeline:
    """The pipeline in that file, or MistakesError. Reads the file once and nothing else."""
    file = f"{path.parent.name}/{path.name}"
    mistakes: list[Mistake] = []
    root = Table(_parsed(path, file), "", file, mistakes)
    if not NAME.fullmatch(path.stem):
        root.wrong("", f"{path.stem!r} cannot be a pipeline's name", f"rename the file: {NAME_RULE}")
    contract = _contract(root.table("contract", needed=True))
    ingest = _ingest(root.table("ingest"), path.stem)
    storage = _storage(root.table("storage"))
    repair = _repair(root.table("repair"))
    kafka = _kafka(root.table("kafka"))
    root.finish()
    if mistakes:
        raise MistakesError(mistakes)
    return Pipeline(path.stem, contract, ingest, storage, repair, kafka)


def _parsed(path: Path, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        what, remedy = f"cannot be read ({error.strerror})", "check that it is there and readable"
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        what, remedy = f"line {line} is not UTF-8", "save the file as UTF-8"
    except tomllib.TOMLDecodeError as error:
        what, remedy = f"not TOML: {error}", "mend that line; strings stand in double quotes"
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, tables in tables without end
        what, remedy = f"not TOML that anybody means: {str(error)[:80]}", "write smaller numbers and flatter tables"
    raise MistakesError([Mistake(file, "", what, remedy)])


def _contract(table: Table) -> Contract:
    form = table.choice("format", ("json", "text", "binary"), "json")
    schema = table.text("schema", "") if form != "json" or "schema" in table.values else ""
    if form == "json" and not schema:
        remedy = 'list the fields with their types, such as schema = "origin STRING, dep_delay INT"'
        table.wrong("schema", "missing, and format is json", remedy)
    if form != "json" and schema:
        table.wrong("schema", f"format is {form}, which has no fields", 'leave it out, or set format = "json"')
    required = table.texts("required")
    if form != "json" and required:
        table.wrong("required", f"format is {form}, which has no fields", "leave it out")
    keys, measures = _keys(table), _measures(table)
    _check_names(table, keys, measures)
    bounds = table.table("bounds")
    contract = Contract(
        topic=table.text("topic", match=_TOPIC, rule="a topic's name: at most 249 letters, digits, dots, _ and -"),
        window_minutes=_window_minutes(table),
        format=form,
        schema=schema,
        required=required,
        event_time=table.text("event_time"),
        tombstone=table.choice("tombstone", ("quarantine", "record"), "quarantine"),
        keys=keys,
        measures=measures,
        horizon_ms=bounds.bound("horizon", "30d"),
        skew_ms=bounds.bound("skew", "1d"),
    )
    if contract.topic in (".", ".."):
        table.wrong("topic", f"{contract.topic!r} is no topic's name", "write the topic's name")
    bounds.finish()
    table.finish()
    return contract


def _window_minutes(table: Table) -> int:
    minutes = table.integer("window_minutes", None, least=1)
    if minutes and not is_window_length(minutes):
        near = min((m for m in range(1, DAY_MINUTES + 1) if is_window_length(m)), key=lambda m: abs(m - minutes))
        table.wrong("window_minutes", f"{minutes} does not divide a day of {DAY_MINUTES} minutes", f"take {near}")
    return minutes


def _keys(table: Table) -> tuple[Key, ...]:
    keys = table.table("keys")
    found = tuple(Key(name, keys.text(name)) for name in keys.values)
    if len(found) > MAX_KEYS:
        table.wrong("keys", f"{len(found)} keys", f"take at most {MAX_KEYS}")
    return found


def _measures(table: Table) -> tuple[Measure, ...]:
    measures = table.table("measures", needed=True)
    if "measures" in table.values and not measures.values:
        measures.wrong("", "there is none", 'name at least one, such as records = { count = "*" }')
    tables = {name: measures.table(name) for name in measures.values}  # notes what is none, which is mistake enough
    return tuple(_measure(name, table) for name, table in tables.items() if isinstance(measures.values[name], dict))


def _measure(name: str, table: Table) -> Measure:
    given = [operation for operation in OPERATIONS if operation in table.values]
    if len(given) != 1:
        table.wrong(
            "", "a measure has exactly one operation", f'write {name} = {{ sum = "value.x" }}, or count, min, max'
        )
        table.values.clear()
        return Measure(name, "count", "*")
    measure = Measure(name, given[0], table.text(given[0]))
    if measure.sql == "*" and measure.operation != "count":
        table.wrong(measure.operation, "only a count takes *", "name what to take, such as value.x")
    table.finish()
    return measure


def _check_names(table: Table, keys: tuple[Key, ...], measures: tuple[Measure, ...]) -> None:
    for kind, names in (("keys", [k.name for k in keys]), ("measures", [m.name for m in measures])):
        for name in names:
            if not NAME.fullmatch(name):
                table.wrong(f"{kind}.{name}", "cannot be a column's name", f"take {NAME_RULE}")
            elif name in _TAKEN | _SYSTEM:
                whose = "each table of aggregates" if name in _TAKEN else "each PostgreSQL table"
                table.wrong(f"{kind}.{name}", f"{whose} already has a column of that name", "take another name")
    for name in sorted({k.name for k in keys} & {m.name for m in measures}):
        table.wrong(f"measures.{name}", "a key has the same name", "rename one of them")


def _ingest(table: Table, name: str) -> IngestPolicy:
    policy = IngestPolicy(
        allowed_lateness_ms=table.duration("allowed_lateness", "1h"),
        idle_after_ms=table.duration("idle_after", "30s", least=1),
        interval_ms=table.duration("interval", "2s", least=1),
        max_records_per_batch=table.integer("max_records_per_batch", 200_000, least=1),
        offset_store=table.choice("offset_store", OFFSET_STORES, "postgres"),
        offset_path=_offset_path(table),
        group=table.text("group", f"onceover-{name}", match=_GROUP, rule="letters, digits, dots, _ and -"),
        isolation=table.choice("isolation", ("read_committed", "read_uncommitted"), "read_committed"),
        first_start=table.choice("first_start", ("earliest", "latest"), "earliest"),
        rate_control=table.choice("rate_control", ("none", "pid"), "none"),
        start_rate=table.integer("start_rate", 500, least=51, most=999),
        min_rate=table.integer("min_rate", 100, least=1),
        share=table.choice("share", ("fair", "plain"), "fair"),
        sharding=table.choice("sharding", tuple(SHARDING), "backlog"),
    )
    table.finish()
    return policy


def _offset_path(table: Table) -> str:
    path = table.text("offset_path", "")
    if wrong := offset_path_mistake(str(table.values.get("offset_store", "postgres")), path):
        table.wrong("offset_path", wrong, f"take {_PATH_RULE.format('/checkpoints/flights')}, or leave it out")
    return path


def offset_path_mistake(store: str, path: str) -> str | None:
    """What is wrong with that path for that offset store, if anything: only the stores that are files have one, and
    nobody could guess where a checkpoint is."""
    if not path:
        return "a checkpoint needs its path on HDFS" if store == "checkpoint" else None
    if store not in ("file", "hdfs", "checkpoint"):
        return f"offset store {store} has no path"
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        return f"{path[:80]!r} does not do"
    return None


def _storage(table: Table) -> StoragePolicy:
    root = table.text(
        "raw_root",
        "/onceover/raw",
        match=_PATH,
        rule=_PATH_RULE.format("/onceover/raw"),
    )
    if {".", ".."} & set(root.split("/")):
        table.wrong("raw_root", f"{root!r} has . or .. in it", "write the path without them")
    policy = StoragePolicy(root, table.bound("retention", "none", least=DAY_MINUTES * 60_000))
    table.finish()
    return policy


def _repair(table: Table) -> RepairPolicy:
    policy = RepairPolicy(table.integer("max_tries", 3, least=1), table.bound("deadline", "none", least=1))
    table.finish()
    return policy


def _kafka(table: Table) -> Mapping[str, str]:
    properties: dict[str, str] = {}
    for name, value in _flat(table.values, ""):
        if why := refusal(name):
            table.wrong(name, *why)
        elif isinstance(value, bool):
            properties[name] = str(value).lower()
        elif isinstance(value, str | int):
            properties[name] = str(value)
        else:
            table.wrong(name, f"{value!r} is not a client property", "write it as a string")
    return properties


def _flat(values: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    """TOML reads `security.protocol = ...` as a table in a table; Kafka's properties are flat."""
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        flat.extend(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)])
    return flat
