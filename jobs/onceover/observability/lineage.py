"""Lineage of a repair: the files and offsets that it read and the windows that it wrote, named as in OpenLineage's
specification (Naming.md). The ledger is the only source of what was published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from onceover.context import PipelineContext
from onceover.ledger import compactions
from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection, in_snapshot, locate_server
from onceover.model.offsets import OffsetRange, coalesce


class DatasetName(NamedTuple):
    """The name of a dataset: `namespace` is its server, `name` its name there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """The reads and writes of one repair request until now. `files` are the window files below the folder `raw`, in the
    windows' order, and the compacted files that replace their text, `bytes` their total size; `offsets` are the topic's
    offsets of their landings. All are empty if nothing was published. Of each window: the `lines` and `bytes` read, the
    `rows` of the aggregates and their `revision`; it is `rewritten` unless the rows already agreed with raw."""

    raw: DatasetName
    topic: DatasetName
    table: DatasetName
    windows: Sequence[Mapping[str, Any]]
    files: tuple[str, ...]
    bytes: int
    offsets: tuple[OffsetRange, ...]


def read_lineage(context: PipelineContext, request_id: int) -> Lineage:
    """Read the lineage of a repair request from the ledger; that of an unknown request is empty."""
    name, layout = context.name, context.layout
    host, port, database = locate_server(context.ledger)
    windows, offsets = read_published(context.ledger, name, request_id)
    standing_in = compactions.list_substitutes(context.ledger, name, [window["window_start"] for window in windows])
    replacing = {start: compacted for start, compacted in standing_in.items() if compacted}
    files: list[str] = []
    for window in windows:
        compacted = replacing.get(window["window_start"])
        files += [layout.compacted_file(window["window_start"], compacted.digest)] if compacted else []
        files += [layout.window_file(window["window_start"])] if window["bytes"] or not compacted else []
    return Lineage(
        raw=_name_raw(context),
        topic=name_topic(context.address("kafka"), context.pipeline.contract.topic),
        table=DatasetName(f"postgres://{host}:{port}", f"{database}.aggregates.{name}"),
        windows=windows,
        files=tuple(files),
        bytes=sum(window["bytes"] for window in windows) + sum(compacted.bytes for compacted in replacing.values()),
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


# Certificates that are no longer valid too: their repairs read and wrote all the same.
_CERTIFICATES = """
  onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
    AND r.request_id = %(request)s AND r.pipeline = %(pipeline)s AND r.state IN ('published', 'confirmed', 'revoked')"""


def read_published(
    connection: Connection, pipeline: str, request_id: int
) -> tuple[list[Mapping[str, Any]], tuple[OffsetRange, ...]]:
    """Return the windows that the request has published until now, in order, and the offset ranges of the batches of
    their landings, merged where they touch. The ranges hold records of other windows too. Reads one snapshot."""
    request = {"pipeline": pipeline, "request": request_id}
    with in_snapshot(connection):
        windows = connection.execute(
            f"""
            SELECT r.window_start, w.window_end, r.lines_read AS lines, c.frozen_length AS bytes,
              c.aggregate_rows AS rows, (r.after ->> 'revision')::integer AS revision,
              r.after ->> 'revision' <> r.before ->> 'revision' AS rewritten
            FROM {_CERTIFICATES} JOIN onceover."window" w ON w.pipeline = r.pipeline
              AND w.window_start = r.window_start
            ORDER BY r.window_start
            """,
            request,
        ).fetchall()
        ranges = connection.execute(
            f"""
            SELECT DISTINCT b.generation, b.kafka_partition, b.start_offset, b.end_offset
            FROM {_CERTIFICATES}
            JOIN onceover.landing l ON l.pipeline = c.pipeline AND l.window_start = c.window_start
              AND l.landing_id <= c.last_landing
            JOIN onceover.landing_part p USING (landing_id)
            JOIN (
              SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range
              UNION ALL
              SELECT batch_id, generation, kafka_partition, start_offset, end_offset FROM onceover.released) b
              ON b.batch_id = l.batch_id AND b.generation = p.generation AND b.kafka_partition = p.kafka_partition
            """,
            request,
        ).fetchall()
    return list(windows), coalesce(map(read_range, ranges))
