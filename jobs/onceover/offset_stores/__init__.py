"""Offset stores, where a pipeline's next offsets are kept: every store that `ingest.offset_store` may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    Raises UnreachableError if the server's address is not configured.
    """
    return _BY_KIND[kind](context, context.pipeline.ingest.offset_path if path is None else path)


def _open_file(context: PipelineContext, path: str) -> OffsetStore:
    return LocalFileOffsetStore(Path(path) if path else local_folder() / "offsets", *_get_group_and_topic(context))


def _open_kafka(context: PipelineContext, path: str) -> OffsetStore:
    group, topic = _get_group_and_topic(context)
    return KafkaOffsetStore(context.address("kafka"), topic, group, context.pipeline.kafka)


def _open_zookeeper(context: PipelineContext, path: str) -> OffsetStore:
    return ZooKeeperOffsetStore(context.address("zookeeper"), *_get_group_and_topic(context))


def _open_hbase(context: PipelineContext, path: str) -> OffsetStore:
    return HBaseOffsetStore(context.address("hbase"), *_get_group_and_topic(context))


def _open_hdfs(context: PipelineContext, path: str) -> OffsetStore:
    folder = path or f"{context.pipeline.storage.raw_root}/{context.name}/offsets"
    return HdfsOffsetStore(context.address("webhdfs"), folder, *_get_group_and_topic(context))


def _open_checkpoint(context: PipelineContext, path: str) -> OffsetStore:
    return CheckpointOffsetStore(context.address("webhdfs"), path, context.pipeline.contract.topic)


def _open_postgres(context: PipelineContext, path: str) -> OffsetStore:
    return LedgerOffsetStore(context.ledger, context.name)


def _open_none(context: PipelineContext, path: str) -> OffsetStore:
    return NoOffsetStore(*_get_group_and_topic(context))


def _get_group_and_topic(context: PipelineContext) -> tuple[str, str]:
    return context.pipeline.ingest.group, context.pipeline.contract.topic


# A new store needs a line here, a name in `model.pipeline` and a run of the contract suite.
_BY_KIND: Mapping[str, Callable[[PipelineContext, str], OffsetStore]] = {
    "postgres": _open_postgres,
    "kafka": _open_kafka,
    "file": _open_file,
    "hdfs": _open_hdfs,
    "zookeeper": _open_zookeeper,
    "hbase": _open_hbase,
    "checkpoint": _open_checkpoint,
    "none": _open_none,
}
