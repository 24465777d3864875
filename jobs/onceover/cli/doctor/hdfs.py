"""The check of HDFS: WebHDFS and RPC, safe mode, free space, and whether an append survives a DataNode's death."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from onceover.cli.doctor.datanodes import check_datanodes, list_datanodes, read_bean, read_setting
from onceover.cli.doctor.machine import check_space
from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config.endpoints import address
from onceover.errors import OnceoverError, TerminalError
from onceover.model.pipeline import Pipeline
from onceover.model.wording import pluralize
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles

_CLIENT = "dfs.client.block.write.replace-datanode-on-failure"


@dataclass(frozen=True, slots=True)
class Writer:
    """The settings of the client that writes for WebHDFS, which runs in a DataNode."""

    replication: int
    replaces: bool
    policy: str
    best_effort: bool


def check_hdfs(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that WebHDFS and the NameNode's RPC answer, safe mode, DataNodes, free space and the settings of writes.
    Writes nothing. Yield nothing if no pipeline needs HDFS."""
    if pipelines and not any(map(_needs_hdfs, pipelines)):
        return
    where = address("webhdfs")
    yield from _check_namenode_rpc()
    root = pipelines[0].storage.raw_root if pipelines else "/"
    WindowFiles(where, Layout(root, "doctor")).read_length(root)
    yield from _check_folders(where, pipelines)
    try:
        state = read_bean(where, "FSNamesystemState")
        mode, living = str(state["FSState"]), int(state["NumLiveDataNodes"])
        free, total = int(state["CapacityRemaining"]), int(state["CapacityTotal"])
    except (OSError, ValueError, LookupError, TypeError):
        what = f"{where} answers, but does not report safe mode and DataNodes; is it a gateway before the NameNode?"
        yield Outcome("HDFS", "note", what)
        return
    if mode != "Operational":
        what = (
            f"{where} is in safe mode and takes no writes; wait until its DataNodes have reported, or end safe mode "
            "with `hdfs dfsadmin -safemode leave`"
        )
        yield Outcome("HDFS", "wrong", what)
    if not living:
        yield Outcome("HDFS", "wrong", f"{where} has no live DataNode; start the DataNodes (`onceover stack up`)")
        return
    if mode == "Operational":
        yield Outcome("HDFS", "fine", f"{where} takes writes, {pluralize(living, 'DataNode')}")
    yield check_space("HDFS", "its DataNodes", free, total, "add a DataNode or a disk, or delete files")
    yield from _check_writers(where, living)
    yield from check_datanodes(where)


def check_survival(writer: Writer, living: int) -> Iterator[Outcome]:
    """Check that the client can write with its replication on `living` DataNodes, and after one of them dies."""
    replicas = writer.replication
    if replicas > living:
        what = (
            f"blocks need {replicas} replicas (dfs.replication), the cluster has {pluralize(living, 'live DataNode')}: "
            f"one disk may hold the only copy of raw; start the others, or set dfs.replication={living}"
        )
        yield Outcome("HDFS", "wrong", what)
    # ReplaceDatanodeOnFailure: DEFAULT wants another DataNode for an append with three replicas or more, ALWAYS always.
    insists = writer.policy == "ALWAYS" or (writer.policy == "DEFAULT" and replicas >= 3)
    if writer.replaces and insists and not writer.best_effort and replicas > 1 and living <= replicas:
        what = (
            f"appends fail once a DataNode dies: {_CLIENT}.policy={writer.policy} needs another in its place, and with "
            f"{living} there is none; set it to NEVER (or {_CLIENT}.best-effort=true) in the DataNodes' hdfs-site.xml, "
            f"which WebHDFS's client reads, or run {replicas + 1} DataNodes"
        )
        yield Outcome("HDFS", "wrong", what)
    elif replicas <= living:
        what = f"{pluralize(replicas, 'replica')} of each block; replace-datanode-on-failure is {writer.policy}"
        yield Outcome("HDFS", "fine", what)


def _needs_hdfs(pipeline: Pipeline) -> bool:
    return pipeline.storage.raw_store == "hdfs" or pipeline.ingest.offset_store in ("hdfs", "checkpoint")


def _check_folders(where: str, pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Check that this user may read each pipeline's raw, and that HDFS appends there; yield only problems."""
    store = HdfsStore(where)
    for pipeline in pipelines:
        if pipeline.storage.raw_store == "hdfs":
            try:
                store.require_usable(pipeline.storage.raw_root)
                store.require_usable(f"{pipeline.storage.raw_root}/{pipeline.name}")
            except TerminalError as error:
                yield Outcome(f"raw of {pipeline.name}", "wrong", str(error))


def _check_writers(where: str, living: int) -> Iterator[Outcome]:
    try:
        writers = {_read_writer(each) for each in list_datanodes(where)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        yield Outcome(
            "HDFS", "note", f"its DataNodes do not report their settings; check that {_CLIENT} fits their number"
        )
        return
    for writer in sorted(writers, key=lambda each: (each.replication, each.policy)):
        yield from check_survival(writer, living)


def _read_writer(datanode: str) -> Writer:
    return Writer(
        replication=int(read_setting(datanode, "dfs.replication")),
        replaces=read_setting(datanode, f"{_CLIENT}.enable") == "true",
        policy=read_setting(datanode, f"{_CLIENT}.policy").upper(),
        best_effort=read_setting(datanode, f"{_CLIENT}.best-effort") == "true",
    )


def _check_namenode_rpc() -> Iterator[Outcome]:
    """Check the address by which Spark reads; yield only a problem. A name service of several NameNodes has no port to
    try."""
    try:
        where = urlsplit(address("hdfs"))
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), SECONDS).close()
    except OnceoverError as error:
        yield Outcome("HDFS", "wrong", str(error))
    except (OSError, ValueError) as error:
        what = f"Spark cannot read at {where.geturl()} ({error}); start it (`onceover stack up`) or set ONCEOVER_HDFS"
        yield Outcome("HDFS", "wrong", what)
