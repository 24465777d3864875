"""What a pipeline is: its contract, and the policies that people may change at any time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from onceover.model.contract import Contract

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")  # a PostgreSQL identifier as it stands, and an HDFS name
NAME_RULE = "a small letter, then at most 40 small letters, digits or _"
OFFSET_STORES = ("postgres", "kafka", "file", "hdfs", "zookeeper", "hbase", "checkpoint", "none")
"""Where the next offset may be kept: what `ingest.offset_store` may name."""


@dataclass(frozen=True, slots=True)
class IngestPolicy:
    """How the topic is read, and when a window closes. `offset_path` is empty but for the offset stores that are files:
    a local folder, or one on HDFS. Rates are in offsets a second: `min_rate` of the topic, `start_rate` of each Kafka
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
    # Defaults are what `make bench` shows for any machine: fair shares read a backlog in one Kafka partition in a third
    # of the batches, shards by backlog are the fastest or near it for any skew. Control is asked for: where batches are
    # mostly overhead, which `interval` alone decides, any rate that is to meet it falls to `min_rate`.
    rate_control: str = "none"
    start_rate: int = 500
    min_rate: int = 100
    share: str = "fair"
    sharding: str = "backlog"


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """Where raw lives on HDFS: an absolute, clean path without the file system's address; and how long it is kept after
    the last record came to it, in ms, None for ever."""

    raw_root: str
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """When a window counts as blocked, and how long after its last record it is to be certified, in ms; None: nobody
    asks."""

    max_tries: int
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One TOML. `kafka` are client properties passed through as they are: no addresses, no secrets."""

    name: str
    contract: Contract
    ingest: IngestPolicy
    storage: StoragePolicy
    repair: RepairPolicy
    kafka: Mapping[str, str] = field(default_factory=dict, hash=False)
