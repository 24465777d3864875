"""A pipeline: its contract, and the policies that an operator may change at any time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from onceover.model.contract import Contract

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")  # a PostgreSQL identifier without quotes, and an HDFS name
NAME_RULE = "a small letter, then at most 40 small letters, digits or _"
OFFSET_STORES = ("postgres", "kafka", "file", "hdfs", "zookeeper", "hbase", "checkpoint", "none")
"""The choices of `ingest.offset_store`: where the next offset is kept."""
SINKS = {"append": False, "transactional": True}
"""The choices of `ingest.sink`: whether a batch's increments commit before its landings, or with them. True skips what
has landed: it is neither planned nor lands again, whatever the offset store says."""


@dataclass(frozen=True, slots=True)
class IngestPolicy:
    """The rules for reading the topic and closing windows. `offset_path`, a folder, local or on HDFS, is empty unless
    the offset store keeps files. Rates are in offsets a second: `min_rate` of the topic, `start_rate` of each Kafka
    partition."""

    allowed_lateness_ms: int
    idle_after_ms: int
    interval_ms: int
    max_records_per_batch: int
    offset_store: str
    offset_path: str
    group: str
    isolation: str
    first_start: str
    # Defaults follow `make bench`: fair shares read a backlog in one Kafka partition in a third of the batches, shards
    # by backlog are the fastest or near it for any skew. Rate control is off: if batches are mostly overhead, which
    # depends on `interval` alone, any rate that is to meet the interval falls to `min_rate`.
    rate_control: str = "none"
    start_rate: int = 500
    min_rate: int = 100
    share: str = "fair"
    sharding: str = "backlog"
    sink: str = "append"

    @property
    def skips_landed(self) -> bool:
        """Whether the sink skips what has landed."""
        return SINKS[self.sink]


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """The folder of raw, an absolute, normalized path without the store's address, the time in ms that a file is kept
    after its last record arrived, None for ever, and the store that holds it."""

    raw_root: str
    retention_ms: int | None = None
    raw_store: str = "hdfs"


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """The failed tries after which a window is blocked, the time in ms after a window's last record by which it must be
    certified, None for no deadline, and whether ingest repairs closed windows itself."""

    max_tries: int
    deadline_ms: int | None = None
    eager: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One TOML as values. `kafka` holds client properties, passed on unchanged: no addresses, no secrets."""

    name: str
    contract: Contract
    ingest: IngestPolicy
    storage: StoragePolicy
    repair: RepairPolicy
    kafka: Mapping[str, str] = field(default_factory=dict, hash=False)
