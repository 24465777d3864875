"""A pipeline's contract: what decides where a record goes and what it counts for, its columns, and its versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onceover.errors import TerminalError
from onceover.model.json_text import to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class Key:
    """What aggregates are grouped by, besides the window."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Measure:
    """What is counted. `operation` is count, sum, min or max; `sql` of a count may be `*`."""

    name: str
    operation: str
    sql: str


@dataclass(frozen=True, slots=True)
class Contract:
    """Where a record goes and what it counts for. Versioned in the ledger: the same fingerprint is the same contract.

    `horizon_ms` and `skew_ms` are how far event time may lie before and after the Kafka timestamp; None is no bound.
    `schema` is Spark DDL and empty unless `format` is json.
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

    def definition(self) -> dict[str, Any]:
        """As JSON values, in a form that `from_definition` reads back for ever."""
        return to_plain(self)  # type: ignore[no-any-return]

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Contract:
        """The contract that the ledger stored."""
        values = dict(definition)
        values["required"] = tuple(values["required"])
        values["keys"] = tuple(Key(**key) for key in values["keys"])
        values["measures"] = tuple(Measure(**measure) for measure in values["measures"])
        return cls(**values)

    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, in hex. The order of keys and measures counts: it is the table's."""
        canonical = json.dumps(self.definition(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


# The columns of a pipeline's aggregates: names, roles and PostgreSQL types, as the ledger keeps them.

KEY_TYPES = frozenset({"text", "boolean", "smallint", "integer", "bigint", "numeric", "date", "timestamptz"})
MEASURE_TYPES = KEY_TYPES | {"real", "double precision"}
OPERATIONS = ("count", "sum", "min", "max")


@dataclass(frozen=True, slots=True)
class Column:
    """One key (`operation` is None) or one measure."""

    name: str
    type: str
    operation: str | None = None

    def __post_init__(self) -> None:
        allowed = KEY_TYPES if self.operation is None else MEASURE_TYPES
        if self.type not in allowed or (self.operation is not None and self.operation not in OPERATIONS):
            raise TerminalError(f"column {self.name}: {self.operation or 'key'} of type {self.type} is not supported")


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a pipeline's aggregates, keys first."""

    keys: tuple[Column, ...]
    measures: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.keys, *self.measures))

    @classmethod
    def from_json(cls, stored: Mapping[str, Sequence[Mapping[str, str]]]) -> Columns:
        return cls(
            tuple(Column(**c) for c in stored["keys"]),
            tuple(Column(**c) for c in stored["measures"]),
        )


# Which version of its contract a record has: a function of its ID, and of nothing else.
#
#     offset    0 ......... cutover to 2 ......... cutover to 3 .........
#     version       1                     2                     3
#
# A Kafka partition that the ledger did not know when a version came, one of a topic created anew as well, has no
# cutover to it: it has that version, or a later one, from its start.


@dataclass(frozen=True, slots=True)
class Cutovers:
    """Where each version begins: by Kafka partition and version, the first offset that has it. `newest` is in force."""

    newest: int = 1
    at: Mapping[KafkaPartition, Mapping[int, int]] = field(default_factory=dict)

    def version(self, source: KafkaPartition, offset: int) -> int:
        """The version of that ID: the largest one whose cutover is not beyond it."""
        known = self.at.get(source, {})
        return next((v for v in range(self.newest, 1, -1) if known.get(v, 0) <= offset), 1)

    def cut_by_version(self, ranges: Iterable[OffsetRange]) -> dict[int, tuple[OffsetRange, ...]]:
        """The same offsets, cut at the cutovers."""
        found: dict[int, list[OffsetRange]] = {}
        for whole in ranges:
            inner = sorted({at for at in self.at.get(whole.source, {}).values() if whole.start < at < whole.end})
            for start, end in zip((whole.start, *inner), (*inner, whole.end), strict=True):
                version = self.version(whole.source, start)
                found.setdefault(version, []).append(OffsetRange(whole.source, start, end))
        return {version: tuple(pieces) for version, pieces in sorted(found.items())}

    def limit_batch(self, generation: str, at: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
        """Up to where the next batch may read, by Kafka partition: what has the oldest version of all that lies in
        `[at, end)`, and nothing of another one. What waits for its turn ends where it stands."""
        left = (OffsetRange(KafkaPartition(generation, p), at[p], end[p]) for p in at if at[p] < end.get(p, 0))
        oldest = next(iter(self.cut_by_version(left).values()), ())
        return {**at, **{r.source.kafka_partition: r.end for r in oldest}}


@dataclass(frozen=True, slots=True)
class Contracts:
    """Every version of a pipeline's contract, the first of them being version 1, and which one a record has."""

    versions: tuple[Contract, ...]
    cutovers: Cutovers = field(default_factory=Cutovers)

    @property
    def newest(self) -> Contract:
        return self.versions[-1]


# What of a contract may change by a cutover, and what needs a pipeline of its own.
#
# Records from both sides of a cutover stand in the same window files and count into the same rows of the same table. So
# both versions must agree on where a window begins and ends, on what a row is, and on what each of its old columns
# means.


def list_changed_parts(old: Contract, new: Contract) -> list[str]:
    """The parts of a contract that are not the same in both."""
    before, after = old.definition(), new.definition()
    return sorted(part for part in before.keys() | after.keys() if before.get(part) != after.get(part))


def list_added_measures(old: Contract, new: Contract) -> list[str]:
    """The measures that only the new one has."""
    known = {measure.name for measure in old.measures}
    return [measure.name for measure in new.measures if measure.name not in known]


def list_refused_changes(old: Contract, new: Contract) -> list[str]:
    """What cannot be cut over, each as a few words; nothing if all of it can, as far as is known without Spark."""
    found = [part for part in ("topic", "window_minutes") if getattr(old, part) != getattr(new, part)]
    before, after = {key.name for key in old.keys}, {key.name for key in new.keys}
    found += [f"key {name} is new" for name in sorted(after - before)]
    found += [f"key {name} is gone" for name in sorted(before - after)]
    operations = {measure.name: measure.operation for measure in new.measures}
    for measure in old.measures:
        now = operations.get(measure.name)
        if now is None:
            found.append(f"measure {measure.name} is gone")
        elif now != measure.operation:
            found.append(f"measure {measure.name} is a {now}, not a {measure.operation}")
    return found
