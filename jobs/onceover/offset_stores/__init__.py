"""Offset stores, where a pipeline's next offsets are kept: every store that `ingest.offset_store` may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from onceover.config.endpoints import address, local_folder
from onceover.ledger.database import Connection
from onceover.model.pipeline import Pipeline
from onceover.offset_stores.checkpoint import CheckpointOffsetStore
from onceover.offset_stores.file import LocalFileOffsetStore
from onceover.offset_stores.hbase import HBaseOffsetStore
from onceover.offset_stores.hdfs import HdfsOffsetStore
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover.offset_stores.none import NoOffsetStore
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.offset_stores.store import CorruptOffsetsError, OffsetStore, StoredOffsets
from onceover.offset_stores.zookeeper import ZooKeeperOffsetStore

__all__ = ["CorruptOffsetsError", "OffsetStore", "StoredOffsets", "open_store"]


def open_store(name: str, pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    """Return the pipeline's store of that kind, which the caller closes. Connects to no server yet.

    Raises UnreachableError if the server's address is not configured.
    """
    return _BY_NAME[name](pipeline, ledger)


def _file(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    root = Path(pipeline.ingest.offset_path) if pipeline.ingest.offset_path else local_folder() / "offsets"
    return LocalFileOffsetStore(root, pipeline.ingest.group, pipeline.contract.topic)


def _kafka(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return KafkaOffsetStore(address("kafka"), pipeline.contract.topic, pipeline.ingest.group, pipeline.kafka)


def _zookeeper(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return ZooKeeperOffsetStore(address("zookeeper"), pipeline.ingest.group, pipeline.contract.topic)


def _hbase(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return HBaseOffsetStore(address("hbase"), pipeline.ingest.group, pipeline.contract.topic)


def _hdfs(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    folder = pipeline.ingest.offset_path or f"{pipeline.storage.raw_root}/{pipeline.name}/offsets"
    return HdfsOffsetStore(address("webhdfs"), folder, pipeline.ingest.group, pipeline.contract.topic)


def _checkpoint(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return CheckpointOffsetStore(address("webhdfs"), pipeline.ingest.offset_path, pipeline.contract.topic)


def _postgres(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return LedgerOffsetStore(ledger, pipeline.name)


def _none(pipeline: Pipeline, ledger: Connection) -> OffsetStore:
    return NoOffsetStore(pipeline.ingest.group, pipeline.contract.topic)


# A new store needs a line here, a name in `model.pipeline` and a run of the contract suite.
_BY_NAME: Mapping[str, Callable[[Pipeline, Connection], OffsetStore]] = {
    "postgres": _postgres,
    "kafka": _kafka,
    "file": _file,
    "hdfs": _hdfs,
    "zookeeper": _zookeeper,
    "hbase": _hbase,
    "checkpoint": _checkpoint,
    "none": _none,
}
