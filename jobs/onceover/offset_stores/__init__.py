"""Offset stores, where a pipeline's next offsets are kept: every store that `ingest.offset_store` may name."""

from __future__ import annotations

from pathlib import Path

from onceover.config.endpoints import local_folder
from onceover.context import PipelineContext
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


def open_store(kind: str, context: PipelineContext, path: str | None = None) -> OffsetStore:
    """Return the pipeline's store of that kind, which the caller closes, at its own `offset_path` if `path` is None.
    Connects to no server yet.

    Raises UnreachableError if the server's address is not configured, ValueError for an unknown kind.
    """
    ingest, topic = context.pipeline.ingest, context.pipeline.contract.topic
    where = ingest.offset_path if path is None else path
    match kind:  # a new store needs a case here, a name in `model.pipeline` and a run of the contract suite
        case "postgres":
            return LedgerOffsetStore(context.ledger, context.name)
        case "kafka":
            return KafkaOffsetStore(context.address("kafka"), topic, ingest.group, context.pipeline.kafka)
        case "file":
            return LocalFileOffsetStore(Path(where) if where else local_folder() / "offsets", ingest.group, topic)
        case "hdfs":
            folder = where or f"{context.pipeline.storage.raw_root}/{context.name}/offsets"
            return HdfsOffsetStore(context.address("webhdfs"), folder, ingest.group, topic)
        case "zookeeper":
            return ZooKeeperOffsetStore(context.address("zookeeper"), ingest.group, topic)
        case "hbase":
            return HBaseOffsetStore(context.address("hbase"), ingest.group, topic)
        case "checkpoint":
            return CheckpointOffsetStore(context.address("webhdfs"), where, topic)
        case "none":
            return NoOffsetStore(ingest.group, topic)
    raise ValueError(f"there is no offset store {kind!r}")
