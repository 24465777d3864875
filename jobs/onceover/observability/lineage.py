"""Lineage of a repair: which files and offsets it read and which windows it wrote, under the names that OpenLineage's
specification gives them (Naming.md). What was published the ledger says, and nothing else is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from onceover.context import PipelineContext
from onceover.ledger import compactions
from onceover.ledger.database import whereabouts
from onceover.model.offsets import OffsetRange
from onceover.observability import lineage_store
from onceover.observability.lineage_store import PublishedWindow


@dataclass(frozen=True, slots=True)
class DatasetName:
    """`namespace` is the server that holds it, `name` is what it is called there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """What one repair request has read and written until now. `files` are the window files below the folder `raw`, in
    the windows' order, and the Parquet files that stand in for their text, with their `bytes`; `offsets` are those of
    the topic that their landings came from. All empty if nothing was published."""

    raw: DatasetName
    topic: DatasetName
    table: DatasetName
    windows: tuple[PublishedWindow, ...]
    files: tuple[str, ...]
    bytes: int
    offsets: tuple[OffsetRange, ...]


def read_lineage(context: PipelineContext, request_id: int) -> Lineage:
    """The lineage of a repair request, read back from the ledger; of one that is not there it is empty."""
    name, layout = context.name, context.layout
    host, port, database = whereabouts(context.ledger)
    windows, offsets = lineage_store.read_published(context.ledger, name, request_id)
    standing_in = compactions.standing_in(context.ledger, name, [one.window_start for one in windows])
    parquet = {start: compacted for start, compacted in standing_in.items() if compacted}
    files: list[str] = []
    for one in windows:
        compacted = parquet.get(one.window_start)
        files += [layout.parquet_file(one.window_start, compacted.digest)] if compacted else []
        files += [layout.window_file(one.window_start)] if one.bytes or not compacted else []
    return Lineage(
        raw=name_hdfs_path(context.address("hdfs"), f"{layout.raw_root}/{name}"),
        topic=name_topic(context.address("kafka"), context.pipeline.contract.topic),
        table=DatasetName(f"postgres://{host}:{port}", f"{database}.aggregates.{name}"),
        windows=windows,
        files=tuple(files),
        bytes=sum(one.bytes for one in windows) + sum(compacted.bytes for compacted in parquet.values()),
        offsets=offsets,
    )


def name_hdfs_path(address: str, path: str) -> DatasetName:
    """A path by its file system's address: a NameNode's, or a name service's, which has no port."""
    place = urlsplit(address)
    return DatasetName(f"{place.scheme}://{place.netloc}", path)


def name_topic(servers: str, topic: str) -> DatasetName:
    """A topic by the first bootstrap server: a list of them has to begin with the same one everywhere."""
    first = servers.split(",")[0].strip()
    return DatasetName(f"kafka://{first.rpartition('://')[2]}", topic)
