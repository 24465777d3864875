"""A pipeline's contract: the rules that place and count a record, the columns of the aggregates, and the versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from onceover.errors import TerminalError
from onceover.model.json_text import to_plain
from onceover.model.measures import SKETCH_TYPE, SKIPPED, STORED, Derived, Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.poison import PoisonRecord
from onceover.model.restatement import Restatement
from onceover.model.windowing import Windowing


@dataclass(frozen=True, slots=True)
class Key:
    """A column that aggregates are grouped by, besides the window."""

    name: str
    sql: str


COMPRESSIONS = ("none", "gzip", "zstd", "snappy", "lz4")
WIRE_FORMATS = ("none", "confluent")
SCHEMA_FORMATS = frozenset({"avro", "protobuf"})
"""Formats that are nothing without a schema in a file."""
BASE64 = "base64:"
"""Before a schema that is no text: Protobuf's descriptor set."""


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a row of CSV is written: the character between fields, the one around them, and the text of a null."""

    separator: str
    quote: str
    null: str


@dataclass(frozen=True, slots=True)
class Contract:
    """The rules that place and count a record. Versioned in the ledger: the same fingerprint is the same contract.

    Event time may lie at most `horizon_ms` before and `skew_ms` after the Kafka timestamp; None is no bound.
    `schema` is Spark DDL and empty unless `format` is json or csv; `csv` is None unless it is csv; `reader_schema` is
    the text of an Avro or Protobuf schema, and empty unless it is either; `message` names Protobuf's; so have keys.
    A record whose SQL of a measure throws goes to quarantine, or, if `on_null` is `skip`, counts as null for it.
    `window_zone` and `zone_changes` are as in `Windowing`; the changes are those of the version `zone_data`.
    """

    topic: str
    window_minutes: int
    format: str
    schema: str
    required: tuple[str, ...]
    event_time: str
    tombstone: str
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    horizon_ms: int | None
    skew_ms: int | None
    on_null: str = "quarantine"
    compression: str = "none"
    wire_format: str = "none"
    csv: CsvLayout | None = None
    reader_schema: str = ""
    message: str = ""
    key_format: str = "text"
    key_schema: str = ""
    key_message: str = ""
    derived: tuple[Derived, ...] = ()
    window_zone: str = ""
    zone_changes: tuple[tuple[int, int], ...] = ()
    zone_data: str = ""

    @property
    def windowing(self) -> Windowing:
        return Windowing(self.window_minutes, self.window_zone, self.zone_changes)

    def with_zone_data_of(self, kept: Contract) -> Contract:
        """Return this contract with the changes of its zone that another one keeps, if that has the same zone."""
        if self.window_zone != kept.window_zone:
            return self
        return replace(self, zone_changes=kept.zone_changes, zone_data=kept.zone_data)

    @property
    def has_fields(self) -> bool:
        """Whether `value` is a struct."""
        return self.has_json or self.format in SCHEMA_FORMATS

    @property
    def has_json(self) -> bool:
        """Whether Spark reads the struct's fields as JSON."""
        return self.format in ("json", "csv")

    @property
    def has_text(self) -> bool:
        """Whether the value is text, which must be UTF-8."""
        return self.has_json or self.format == "text"

    @property
    def needs_registry(self) -> bool:
        """Whether a value or a key says by which schema it was written, and is read by it."""
        return self.wire_format == "confluent" and not SCHEMA_FORMATS.isdisjoint((self.format, self.key_format))

    def definition(self) -> dict[str, Any]:
        """Return JSON values, in a form that every later `from_definition` reads."""
        return to_plain(self)  # type: ignore[no-any-return]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for `to_plain`, without later ones that a contract does without: so that its fingerprint
        stays."""
        later = {"compression": "none", "wire_format": "none", "csv": None, "reader_schema": "", "message": "",
                 "key_format": "text", "key_schema": "", "key_message": "", "derived": (),
                 "window_zone": "", "zone_changes": (), "zone_data": ""}  # fmt: skip
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in values if name not in later or value != later[name]}

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Contract:
        """Return the contract of a definition that the ledger stored."""
        values = dict(definition)
        values["required"] = tuple(values["required"])
        values["keys"] = tuple(Key(**key) for key in values["keys"])
        values["measures"] = tuple(Measure(**measure) for measure in values["measures"])
        values["derived"] = tuple(Derived(**each) for each in values.get("derived", ()))
        values["zone_changes"] = tuple((second, offset) for second, offset in values.get("zone_changes", ()))
        if "csv" in values:
            values["csv"] = CsvLayout(**values["csv"])
        return cls(**values)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON, in hex. The order of keys and measures counts: it is the
        table's."""
        canonical = json.dumps(self.definition(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def list_written_measures(contract: Contract) -> list[Measure]:
    """Return the measures that have SQL of their own: all but those that count what others skipped."""
    return [measure for measure in contract.measures if measure.operation != SKIPPED]


def name_in_toml(contract: Contract, measure: Measure) -> str:
    """Return what the TOML calls the measure, which may be stored for a derived column."""
    of = next((each for each in contract.derived if measure.name in each.parts), None)
    return f"measures.{of.name}.{of.operation}" if of else f"measures.{measure.name}.{measure.operation}"


def name_values(contract: Contract) -> dict[str, str]:
    """Return what messages call event time, each key and each measure, by its column."""
    keys = {f"k_{key.name}": f"key {key.name}" for key in contract.keys}
    return {
        "event_ms": "event_time",
        **keys,
        **{f"m_{m.name}": f"measure {m.name}" for m in list_written_measures(contract)},
    }


# The columns of a pipeline's aggregates: names, roles and PostgreSQL types, as the ledger keeps them.

KEY_TYPES = frozenset({"text", "boolean", "smallint", "integer", "bigint", "numeric", "date", "timestamptz"})
MEASURE_TYPES = KEY_TYPES | {"real", "double precision", SKETCH_TYPE}


@dataclass(frozen=True, slots=True)
class Column:
    """One key (`operation` is None) or one measure."""

    name: str
    type: str
    operation: str | None = None

    def __post_init__(self) -> None:
        allowed = KEY_TYPES if self.operation is None else MEASURE_TYPES
        if self.type not in allowed or (self.operation is not None and self.operation not in STORED):
            raise TerminalError(
                f"column {self.name}: {self.operation or 'key'} of type {self.type} is not supported; cast it"
            )


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """A column of that PostgreSQL type, which the ledger computes of the measures of its row."""

    type: str
    of: Derived

    @property
    def name(self) -> str:
        return self.of.name


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a pipeline's aggregates, keys first."""

    keys: tuple[Column, ...]
    measures: tuple[Column, ...]
    derived: tuple[DerivedColumn, ...] = ()

    @property
    def staged(self) -> tuple[str, ...]:
        """The names of the columns that a batch or a repair gives."""
        return tuple(column.name for column in (*self.keys, *self.measures))

    @property
    def values(self) -> tuple[Column | DerivedColumn, ...]:
        """All columns but keys."""
        return (*self.measures, *self.derived)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.keys, *self.values))

    @property
    def shown(self) -> list[str]:
        """The names of the measures that a person reads: without texts and sketches that others are computed of."""
        hidden = {part for each in self.derived if each.of.operation != "avg" for part in each.of.parts}
        return [column.name for column in self.values if column.name not in hidden]

    @classmethod
    def from_json(cls, stored: Mapping[str, Sequence[Mapping[str, Any]]]) -> Columns:
        return cls(
            tuple(Column(**c) for c in stored["keys"]),
            tuple(Column(**c) for c in stored["measures"]),
            tuple(DerivedColumn(c["type"], Derived(**c["of"])) for c in stored.get("derived", ())),
        )


# A record's ID alone decides its contract's version.
#
#     offset    0 ......... cutover to 2 ......... cutover to 3 .........
#     version       1                     2                     3
#
# A Kafka partition that was unknown to the ledger at a cutover, also one of a recreated topic, has that version or a
# later one from its start.


@dataclass(frozen=True, slots=True)
class Cutovers:
    """The first offset of each version, by Kafka partition and version. `newest` is the version in force."""

    newest: int = 1
    at: Mapping[KafkaPartition, Mapping[int, int]] = field(default_factory=dict)

    def version(self, source: KafkaPartition, offset: int) -> int:
        """Return the version of that ID: the largest one whose cutover is not beyond the offset."""
        cutovers = self.at.get(source, {})
        return next((v for v in range(self.newest, 1, -1) if cutovers.get(v, 0) <= offset), 1)

    def cut_by_version(self, ranges: Iterable[OffsetRange]) -> dict[int, tuple[OffsetRange, ...]]:
        """Cut the ranges at the cutovers; return the pieces by version, in order."""
        pieces: dict[int, list[OffsetRange]] = {}
        for whole in ranges:
            inner = sorted({at for at in self.at.get(whole.source, {}).values() if whole.start < at < whole.end})
            for start, end in zip((whole.start, *inner), (*inner, whole.end), strict=True):
                version = self.version(whole.source, start)
                pieces.setdefault(version, []).append(OffsetRange(whole.source, start, end))
        return {version: tuple(of_version) for version, of_version in sorted(pieces.items())}

    def limit_batch(self, generation: str, at: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
        """Return the end, by Kafka partition, up to which the next batch may read: a batch reads only offsets of the
        oldest version in `[at, end)`. A Kafka partition that must wait ends at its `at`."""
        left = (OffsetRange(KafkaPartition(generation, p), at[p], end[p]) for p in at if at[p] < end.get(p, 0))
        oldest = next(iter(self.cut_by_version(left).values()), ())
        return {**at, **{r.source.kafka_partition: r.end for r in oldest}}


@dataclass(frozen=True, slots=True)
class Contracts:
    """Every version of a pipeline's contract, from version 1, the cutovers between them, the poison records and the
    restatements. A record's version is the larger of its ID's and its window's."""

    versions: tuple[Contract, ...]
    cutovers: Cutovers = field(default_factory=Cutovers)
    poison: tuple[PoisonRecord, ...] = ()
    restatements: tuple[Restatement, ...] = ()

    def find_restated_version(self, window_start: datetime) -> int:
        """Return the version of the window, 1 for one that was not restated. Raises TerminalError for a version that
        is not among these."""
        version = max((each.version for each in self.restatements if each.covers(window_start)), default=1)
        if version > len(self.versions):
            raise TerminalError(f"windows were restated under version {version} of the contract, which is not known")
        return version

    def list_poison(self, version: int) -> tuple[PoisonRecord, ...]:
        """Return the records that are not evaluated under that version."""
        return tuple(record for record in self.poison if record.version == version)

    @property
    def newest(self) -> Contract:
        return self.versions[-1]
