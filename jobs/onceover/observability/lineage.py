"""Lineage of a repair: the files and offsets that it read and the windows that it wrote, named as in OpenLineage's
specification (Naming.md). The ledger is the only source of what was published.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from onceover.context import PipelineContext
from onceover.ledger import compactions
from onceover.ledger.database import locate_server
from onceover.model.offsets import OffsetRange
from onceover.observability import lineage_store
from onceover.observability.lineage_store import PublishedWindow


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset: `namespace` is its server, `name` its name there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """The reads and writes of one repair request until now. `files` are the window files below the folder `raw`, in the
    windows' order, and the compacted files that replace their text, `bytes` their total size; `offsets` are the topic's
    offsets of their landings. All are empty if nothing was published."""

    raw: DatasetName
    topic: DatasetName
    table: DatasetName
    windows: tuple[PublishedWindow, ...]
    files: tuple[str, ...]
    bytes: int
    offsets: tuple[OffsetRange, ...]


def read_lineage(context: PipelineContext, request_id: int) -> Lineage:
    """Read the lineage of a repair request from the ledger; that of an unknown request is empty."""
    name, layout = context.name, context.layout
    host, port, database = locate_server(context.ledger)
    windows, offsets = lineage_store.read_published(context.ledger, name, request_id)
    standing_in = compactions.list_substitutes(context.ledger, name, [window.window_start for window in windows])
    replacing = {start: compacted for start, compacted in standing_in.items() if compacted}
    files: list[str] = []
    for window in windows:
        compacted = replacing.get(window.window_start)
        files += [layout.compacted_file(window.window_start, compacted.digest)] if compacted else []
        files += [layout.window_file(window.window_start)] if window.bytes or not compacted else []
    return Lineage(
        raw=_name_raw(context),
        topic=name_topic(context.address("kafka"), context.pipeline.contract.topic),
        table=DatasetName(f"postgres://{host}:{port}", f"{database}.aggregates.{name}"),
        windows=windows,
        files=tuple(files),
        bytes=sum(window.bytes for window in windows) + sum(compacted.bytes for compacted in replacing.values()),
        offsets=offsets,
    )


def _name_raw(context: PipelineContext) -> DatasetName:
    path = f"{context.layout.raw_root}/{context.name}"
    if context.pipeline.storage.raw_store == "hdfs":
        return name_hdfs_path(context.address("hdfs"), path)
    return DatasetName(context.raw_address, path)


def name_hdfs_path(address: str, path: str) -> DatasetName:
    """Name a path by its file system's address: a NameNode, or a name service, which has no port."""
    place = urlsplit(address)
    return DatasetName(f"{place.scheme}://{place.netloc}", path)


def name_topic(servers: str, topic: str) -> DatasetName:
    """Name a topic by the first bootstrap server, so each list of servers must begin with the same one."""
    first = servers.split(",")[0].strip()
    return DatasetName(f"kafka://{first.rpartition('://')[2]}", topic)
