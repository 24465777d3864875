"""The tables of a pipeline's TOML: their keys, defaults and allowed values.

A field is named for its key in the file, durations with `_ms` at the end; its description is the remedy for a missing
or wrong value. Rules across keys are validators of the later key, so that one pass finds all mistakes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from onceover.config.contract_tables import ContractTable
from onceover.config.kafka_properties import explain_bad_value, explain_refusal
from onceover.config.mistakes import suggest_name
from onceover.config.raw_stores import list_raw_stores
from onceover.config.table_rules import HOUR, SECOND, TABLE, Count, Text, read_duration, require_one_of, wrong
from onceover.model.batch_plan import SHARDING
from onceover.model.pipeline import OFFSET_STORES, SINKS

_PATH = r"^(/(\.*[A-Za-z0-9_=-][A-Za-z0-9_.=-]*|\.{3,}))+$"  # no . and no .. in it
_PATH_RULE = "take an absolute path such as {}, without hdfs://, spaces, //, /./, /../ or a / at the end"


def _require_raw_store(value: str) -> str:
    if value not in (stores := list_raw_stores()):
        more = "; a store of your own needs ONCEOVER_RAW_STORES, see docs/raw-stores.md"
        raise wrong(f"{value[:80]!r} is no raw store", suggest_name(value, tuple(stores)) + more)
    return value


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
        raise wrong(what, f"{_PATH_RULE.format('/checkpoints/flights')}, or leave it out")
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
        raise wrong(*why)
    return name


def _check_values(properties: dict[str, str]) -> dict[str, str]:
    for name, value in properties.items():
        if why := explain_bad_value(name, value):
            raise wrong(*why, name)
    return properties


def _format_property(value: Any) -> str:
    if not isinstance(value, str | int):
        raise wrong("is not a string, a number or a boolean", "write it as a string")
    return str(value).lower() if isinstance(value, bool) else str(value)


Group = Annotated[Text, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$", description="take letters, digits, dots, _ and -")]
Property = Annotated[str, AfterValidator(_check_property)]
PropertyText = Annotated[str, BeforeValidator(_format_property)]
RawStoreName = Annotated[Text, AfterValidator(_require_raw_store)]
RawRoot = Annotated[Text, Field(pattern=_PATH, description=_PATH_RULE.format("/onceover/raw"))]


@dataclass(config=TABLE)
class IngestTable:
    allowed_lateness_ms: Annotated[int, read_duration()] = HOUR
    idle_after_ms: Annotated[int, read_duration("1ms")] = 30 * SECOND
    interval_ms: Annotated[int, read_duration("1ms")] = 2 * SECOND
    max_records_per_batch: Count = 200_000
    offset_store: Annotated[Text, require_one_of(OFFSET_STORES)] = "postgres"
    offset_path: Annotated[Text | None, AfterValidator(_parse_offset_path)] = Field(default=None, validate_default=True)
    group: Group = ""  # onceover-NAME
    isolation: Annotated[Text, require_one_of(("read_committed", "read_uncommitted"))] = "read_committed"
    first_start: Annotated[Text, require_one_of(("earliest", "latest"))] = "earliest"
    rate_control: Annotated[Text, require_one_of(("none", "pid"))] = "none"
    start_rate: Annotated[int, Field(strict=True, ge=51, le=999, description="write a number from 51 to 999")] = 500
    min_rate: Count = 100
    share: Annotated[Text, require_one_of(("fair", "plain"))] = "fair"
    sharding: Annotated[Text, require_one_of(SHARDING)] = "backlog"
    sink: Annotated[Text, require_one_of(SINKS)] = "append"


@dataclass(config=TABLE)
class StorageTable:
    raw_store: RawStoreName = "hdfs"
    raw_root: RawRoot = "/onceover/raw"
    retention_ms: Annotated[int | None, read_duration("1d", unless="none")] = None


@dataclass(config=TABLE)
class RepairTable:
    max_tries: Count = 3
    deadline_ms: Annotated[int | None, read_duration("1ms", unless="none")] = None
    eager: Annotated[bool, Field(strict=True)] = False


@dataclass(config=TABLE)
class PipelineTable:
    contract: ContractTable
    ingest: IngestTable = Field(default_factory=IngestTable)
    storage: StorageTable = Field(default_factory=StorageTable)
    repair: RepairTable = Field(default_factory=RepairTable)
    kafka: Annotated[dict[Property, PropertyText], BeforeValidator(_flatten), AfterValidator(_check_values)] = Field(
        default_factory=dict
    )
