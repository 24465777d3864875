"""HDFS as doctor looks at it: both its doors, safe mode, room, and whether an append survives a DataNode's death."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from onceover.cli.doctor.machine import room
from onceover.cli.doctor.outcome import SECONDS, Outcome, get_json
from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.explain.finding_text import pluralize
from onceover.model.pipeline import Pipeline
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles

_CLIENT = "dfs.client.block.write.replace-datanode-on-failure"
_MOST_ASKED = 3  # DataNodes of one cluster are set alike


@dataclass(frozen=True, slots=True)
class Writer:
    """How the client that writes for WebHDFS is set, which lives in a DataNode."""

    replication: int
    replaces: bool
    policy: str
    best_effort: bool


def hdfs(pipelines: Sequence[Pipeline]) -> Iterator[Outcome]:
    """Whether both doors of HDFS answer, what the NameNode says of safe mode, DataNodes and room, and how DataNodes
    write. Writes nothing."""
    where = address("webhdfs")
    yield from _namenode_rpc()
    root = pipelines[0].storage.raw_root if pipelines else "/"
    WindowFiles(where, Layout(root, "doctor")).read_length(root)
    try:
        state = _bean(where, "FSNamesystemState")
        mode, living = str(state["FSState"]), int(state["NumLiveDataNodes"])
        free, total = int(state["CapacityRemaining"]), int(state["CapacityTotal"])
    except (OSError, ValueError, LookupError, TypeError):
        what = f"{where} answers; it does not tell of safe mode and DataNodes (no NameNode itself?)"
        yield Outcome("HDFS", "note", what)
        return
    if mode != "Operational":
        what = (
            f"{where} is in safe mode and takes no writes; wait until its DataNodes have reported, or end it with "
            "`hdfs dfsadmin -safemode leave`"
        )
        yield Outcome("HDFS", "wrong", what)
    if not living:
        yield Outcome("HDFS", "wrong", f"{where} has no living DataNode; start them (`onceover stack up`)")
        return
    if mode == "Operational":
        yield Outcome("HDFS", "fine", f"{where} takes writes, {pluralize(living, 'DataNode')}")
    yield room("HDFS", "its DataNodes", free, total, "add a DataNode or a disk, or delete what nobody needs")
    yield from _writers(where, living)


def survival(writer: Writer, living: int) -> Iterator[Outcome]:
    """Whether that client can write what it is asked to on so many living DataNodes, and after one of them dies."""
    wanted = writer.replication
    if wanted > living:
        what = (
            f"each block is to have {wanted} replicas (dfs.replication) and {pluralize(living, 'DataNode')} lives: one "
            f"disk may hold the only copy of raw; start the others, or set dfs.replication={living}"
        )
        yield Outcome("HDFS", "wrong", what)
    # ReplaceDatanodeOnFailure: DEFAULT wants another DataNode for an append with three replicas or more, ALWAYS always.
    insists = writer.policy == "ALWAYS" or (writer.policy == "DEFAULT" and wanted >= 3)
    if writer.replaces and insists and not writer.best_effort and wanted > 1 and living <= wanted:
        what = (
            f"appends fail once a DataNode dies: {_CLIENT}.policy={writer.policy} wants another in its place, and with "
            f"{living} there is none; set it to NEVER (or {_CLIENT}.best-effort=true) in the DataNodes' hdfs-site.xml, "
            f"where WebHDFS's client lives, or have {wanted + 1} DataNodes"
        )
        yield Outcome("HDFS", "wrong", what)
    elif wanted <= living:
        what = f"{pluralize(wanted, 'replica')} of each block; replace-datanode-on-failure is {writer.policy}"
        yield Outcome("HDFS", "fine", what)


def _writers(where: str, living: int) -> Iterator[Outcome]:
    scheme = urlsplit(where).scheme
    try:
        nodes = json.loads(_bean(where, "NameNodeInfo")["LiveNodes"]).values()
        addresses = [node["infoAddr" if scheme == "http" else "infoSecureAddr"] for node in nodes]
        found = {_writer(f"{scheme}://{each}") for each in sorted(addresses)[:_MOST_ASKED]}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        yield Outcome(
            "HDFS", "note", f"its DataNodes do not tell their settings; see that {_CLIENT} suits their number"
        )
        return
    for writer in sorted(found, key=lambda each: (each.replication, each.policy)):
        yield from survival(writer, living)


def _writer(datanode: str) -> Writer:
    def setting(name: str) -> str:
        return str(get_json(f"{datanode}/conf?name={name}")["property"]["value"])

    return Writer(
        replication=int(setting("dfs.replication")),
        replaces=setting(f"{_CLIENT}.enable") == "true",
        policy=setting(f"{_CLIENT}.policy").upper(),
        best_effort=setting(f"{_CLIENT}.best-effort") == "true",
    )


def _bean(where: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = get_json(f"{where}/jmx?qry=Hadoop:service=NameNode,name={name}")["beans"][0]
    return found


def _namenode_rpc() -> Iterator[Outcome]:
    """What Spark reads by. Only a problem is told; a name service of several NameNodes has no port to try."""
    try:
        where = urlsplit(address("hdfs"))
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), SECONDS).close()
    except OnceoverError as error:
        yield Outcome("HDFS", "wrong", str(error))
    except (OSError, ValueError) as error:
        what = f"Spark cannot read at {where.geturl()} ({error}); start it (`onceover stack up`) or set ONCEOVER_HDFS"
        yield Outcome("HDFS", "wrong", what)
