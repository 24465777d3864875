"""The check of HDFS's DataNodes, by their own settings: whether raw survives a power cut and the decay of a disk, and
an append the death of a DataNode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from onceover.cli.doctor.outcome import Outcome, get_json
from onceover.model.wording import pluralize
from onceover.raw.kerberos import make_headers

SYNC = "dfs.datanode.synconclose"
PERIOD = "dfs.datanode.scan.period.hours"
PACE = "dfs.block.scanner.volume.bytes.per.second"
_CLIENT = "dfs.client.block.write.replace-datanode-on-failure"
_DEFAULT_HOURS = 504  # what HDFS takes for a period of 0
_MAX_ASKED = 3  # DataNodes of one cluster are set alike


@dataclass(frozen=True, slots=True)
class Durability:
    """The settings of one DataNode, at `address`, about what it keeps: `scan_hours` below 0 or a `scan_pace` of 0
    bytes a second turn its block scanner off."""

    address: str
    syncs: bool
    scan_hours: int
    scan_pace: int

    @property
    def scans(self) -> bool:
        return self.scan_hours >= 0 and self.scan_pace > 0


@dataclass(frozen=True, slots=True)
class Writer:
    """The settings of the client that writes for WebHDFS, which runs in a DataNode."""

    replication: int
    replaces: bool
    policy: str
    best_effort: bool


def list_datanodes(namenode: str) -> list[str]:
    """Return the web addresses of some live DataNodes, by the NameNode at that address. Raise OSError, ValueError,
    LookupError, TypeError or AttributeError if it does not name them."""
    scheme = urlsplit(namenode).scheme
    nodes = json.loads(read_bean(namenode, "NameNodeInfo")["LiveNodes"]).values()
    addresses = [node["infoAddr" if scheme == "http" else "infoSecureAddr"] for node in nodes]
    return [f"{scheme}://{each}" for each in sorted(addresses)[:_MAX_ASKED]]


def read_bean(namenode: str, name: str) -> dict[str, Any]:
    """Return that bean of the NameNode. Raise as `list_datanodes`."""
    bean: dict[str, Any] = _get(f"{namenode}/jmx?qry=Hadoop:service=NameNode,name={name}")["beans"][0]
    return bean


def read_setting(datanode: str, name: str) -> str:
    """Return a DataNode's setting. Raise as `list_datanodes`."""
    return str(_get(f"{datanode}/conf?name={name}")["property"]["value"])


def _get(url: str) -> Any:
    return get_json(url, **make_headers(url))


def check_datanodes(namenode: str, living: int) -> Iterator[Outcome]:
    """Check the DataNodes that the NameNode at that address names, `living` in all."""
    unreported = (OSError, ValueError, LookupError, TypeError, AttributeError)
    what = "its DataNodes do not report their settings; check that "
    try:
        addresses = list_datanodes(namenode)
        writers = {*map(_read_writer, addresses)}
    except unreported:
        fits = f"{SYNC} is true, that {PERIOD} is not negative, and that {_CLIENT} fits their number"
        yield Outcome("HDFS", "note", what + fits)
        return
    for writer in sorted(writers, key=lambda each: (each.replication, each.policy)):
        yield from check_survival(writer, living)
    try:
        settings = [*map(_read_durability, addresses)]
    except unreported:
        yield Outcome("HDFS", "note", what + f"{SYNC} is true, and that {PERIOD} is not negative")
        return
    yield from judge_durability(settings)


def _read_durability(datanode: str) -> Durability:
    return Durability(
        address=datanode,
        syncs=read_setting(datanode, SYNC) == "true",
        scan_hours=int(read_setting(datanode, PERIOD)),
        scan_pace=int(read_setting(datanode, PACE)),
    )


def _read_writer(datanode: str) -> Writer:
    return Writer(
        replication=int(read_setting(datanode, "dfs.replication")),
        replaces=read_setting(datanode, f"{_CLIENT}.enable") == "true",
        policy=read_setting(datanode, f"{_CLIENT}.policy").upper(),
        best_effort=read_setting(datanode, f"{_CLIENT}.best-effort") == "true",
    )


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


def judge_durability(datanodes: Sequence[Durability]) -> Iterator[Outcome]:
    """Yield a problem for each setting that lets raw be lost, and otherwise that all is well."""
    unsynced = [each.address for each in datanodes if not each.syncs]
    unscanned = [each.address for each in datanodes if not each.scans]
    if unsynced:
        what = (
            f"{_name(unsynced)} keep what has landed in memory until their kernel writes it: a power cut loses it "
            f"after Kafka's offsets are committed; set {SYNC}=true in their hdfs-site.xml, and restart them"
        )
        yield Outcome("HDFS", "wrong", what)
    if unscanned:
        what = (
            f"{_name(unscanned)} never compare blocks with their checksums: a bad replica stays unnoticed until the "
            f"good ones are gone too; set {PERIOD}={_DEFAULT_HOURS} and leave {PACE} above 0 in their hdfs-site.xml, "
            "and restart them"
        )
        yield Outcome("HDFS", "wrong", what)
    if datanodes and not unsynced and not unscanned:
        hours = max(each.scan_hours or _DEFAULT_HOURS for each in datanodes)
        what = f"DataNodes write what has landed to disk ({SYNC}), and scan each block every {hours / 24:,.0f} days"
        yield Outcome("HDFS", "fine", what)


def _name(addresses: Sequence[str]) -> str:
    return f"{pluralize(len(addresses), 'DataNode')} ({', '.join(addresses)})"
