"""What a pipeline is: its contract, and the policies that people may change at any time; found by name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onceover.errors import UsageError
from onceover.home import pipelines_folder
from onceover.mistakes import Mistake, MistakesError, did_you_mean

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")  # a PostgreSQL identifier as it stands, and an HDFS name
NAME_RULE = "a small letter, then at most 40 small letters, digits or _"


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
        definition: dict[str, Any] = asdict(self)
        return json.loads(json.dumps(definition))  # type: ignore[no-any-return]

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


@dataclass(frozen=True, slots=True)
class IngestPolicy:
    """How the topic is read, and when a window closes."""

    allowed_lateness_ms: int
    idle_after_ms: int
    interval_ms: int
    max_records_per_batch: int
    offset_store: str
    group: str
    isolation: str
    sink: str
    first_start: str


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """Where raw lives on HDFS: an absolute, clean path without the file system's address."""

    raw_root: str


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """When a window counts as blocked."""

    max_tries: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One TOML. `kafka` are client properties passed through as they are: no addresses, no secrets."""

    name: str
    contract: Contract
    ingest: IngestPolicy
    storage: StoragePolicy
    repair: RepairPolicy
    kafka: Mapping[str, str] = field(default_factory=dict, hash=False)


def load(path: Path) -> Pipeline:
    """Read one TOML; the file's stem is the pipeline's name. MistakesError names everything that is wrong with it."""
    from onceover.pipeline_toml import read  # it makes these value objects, so it imports this module

    return read(path)


def names(root: Path | None = None) -> tuple[str, ...]:
    """The names of all pipelines under the home, sorted, without reading them."""
    return tuple(sorted(_files(root)))


def find(name: str, root: Path | None = None) -> Pipeline:
    """The pipeline of that name. What was typed is compared with what is there and never becomes part of a path."""
    files = _files(root)
    if name not in files:
        shown = repr(name if len(name) <= 60 else name[:57] + "...")
        raise UsageError(f"there is no pipeline {shown}; {did_you_mean(name, list(files))}")
    found = load(files[name])
    for other, path in sorted(files.items()):
        if other != name and _group(path) == found.ingest.group:
            raise MistakesError([_shared_group(files[name], other, found.ingest.group)])
    return found


def all_pipelines(root: Path | None = None) -> tuple[Pipeline, ...]:
    """All of them by name, or a MistakesError with the mistakes of all files; two must not share a group."""
    found: list[Pipeline] = []
    mistakes: list[Mistake] = []
    for _, path in sorted(_files(root).items()):
        try:
            found.append(load(path))
        except MistakesError as error:
            mistakes.extend(error.mistakes)
    groups: dict[str, str] = {}
    for pipeline in found:
        other = groups.setdefault(pipeline.ingest.group, pipeline.name)
        if other != pipeline.name:
            mistakes.append(_shared_group(_files(root)[pipeline.name], other, pipeline.ingest.group))
    if mistakes:
        raise MistakesError(mistakes)
    return tuple(found)


def _group(path: Path) -> str | None:
    """The consumer group of another pipeline; a file that is wrong is told of when its own pipeline is asked for."""
    try:
        return load(path).ingest.group
    except MistakesError:
        return None


def _shared_group(path: Path, other: str, group: str) -> Mistake:
    what = f"pipeline {other} commits its offsets in the same consumer group {group!r}"
    return Mistake(f"{path.parent.name}/{path.name}", "ingest.group", what, "give each its own, or leave it out")


def _files(root: Path | None) -> dict[str, Path]:
    folder = root / "pipelines" if root else pipelines_folder()
    return {path.stem: path for path in folder.glob("*.toml") if path.is_file()}
