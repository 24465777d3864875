"""The embedded HDFS: one NameNode and one or more DataNodes, with the settings that an appending client needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onceover_local.stack.files import format_hadoop_xml, make_whole, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.kerberos import GROUPS as SECURED_GROUPS
from onceover_local.stack.kerberos import Kdc
from onceover_local.stack.part import LOGGING, find_java, get_json
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process, run_once

REPLICAS: Final = 2
"""Of each block, where there are as many DataNodes."""
GROUPS: Final = "root=supergroup;dr.who=;ingest=onceover;airflow=onceover;oncall=onceover;"
"""Of the users of HDFS: a stranger is in none."""
COMMON: dict[str, object] = {
    # With as many replicas as DataNodes, no other can replace a lost one: continue with those left.
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.heartbeat.interval": 1,
    # A page in a browser may send POSTs to any port, and PUTs through it; it cannot send the header that this requires.
    "dfs.webhdfs.rest-csrf.enabled": "true",
}
"""Settings of NameNode and DataNodes alike."""
DURABLE: dict[str, object] = {
    # What has landed is on the disk, not in the page cache of a host that may lose power.
    "dfs.datanode.synconclose": "true",
    # Every three weeks each block is compared with its checksums, so that a good replica replaces a bad one in time.
    "dfs.datanode.scan.period.hours": 504,
}
"""Settings of DataNodes that keep raw over power cuts and years."""


class NameNode:
    """A `Part`. Ready means: out of safe mode, with every DataNode's block report."""

    name = "namenode"
    ports: tuple[str, ...] = ("namenode", "namenode-http")
    start_s = 180.0
    stop_s = 20.0

    def __init__(self, place: Place, datanodes: int, kdc: Kdc | None = None) -> None:
        self._place, self._kdc = place, kdc
        self._datanodes = datanodes
        self.process = Process(self.name, place.local)

    @property
    def _folder(self) -> Path:
        return self._place.get_folder("hdfs") / self.name

    @property
    def _names(self) -> Path:
        return self._folder / "names"

    def prepare(self, say: Say) -> Command:
        self._place.make_folder("hdfs", say)
        start, configuration = _prepare_daemon(
            self._place, self._folder, self._make_site(self._names), "-Xmx256m", say, self._kdc
        )
        if not self._names.exists():
            say(self.name, "formats its folder of names")
            self._format(say)
        return Command((*start, "org.apache.hadoop.hdfs.server.namenode.NameNode"), configuration=configuration)

    def is_ready(self) -> bool:
        if not is_listening(self._place.ports["namenode"]):
            return False
        state = _read_bean(self.get_address(), "service=NameNode,name=FSNamesystemState", self._kdc)
        if state.get("FSState") != "Operational" or state.get("NumLiveDataNodes", 0) < self._datanodes:
            return False
        # A DataNode is live before it has reported its blocks; a read in between finds none.
        activity = _read_bean(self.get_address(), "service=NameNode,name=NameNodeActivity", self._kdc)
        return bool(activity.get("StorageBlockReportNumOps", 0) >= self._datanodes)

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports['namenode-http']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"webhdfs": self.get_address(), "hdfs": f"hdfs://{LOOPBACK}:{self._place.ports['namenode']}"}

    def make_settings(self) -> dict[str, object]:
        """What its core-site.xml and hdfs-site.xml say."""
        return {**_make_core_site(self._place, self._folder), **self._make_site(self._names)}

    def _make_site(self, names: Path) -> dict[str, object]:
        return {
            "dfs.replication": min(self._datanodes, REPLICAS),
            **COMMON,
            "dfs.namenode.rpc-address": f"{LOOPBACK}:{self._place.ports['namenode']}",
            "dfs.namenode.http-address": f"{LOOPBACK}:{self._place.ports['namenode-http']}",
            "dfs.namenode.name.dir": names.as_uri(),
            "dfs.permissions.enabled": "true",  # as real ones have; the user who starts it may all, and so may root
            "hadoop.user.group.static.mapping.overrides": GROUPS + (SECURED_GROUPS if self._kdc else ""),
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": 0,  # all DataNodes have reported; do not wait another 30 s
            "dfs.namenode.accesstime.precision": 0,  # a read must not write to the edit log
            "dfs.namenode.heartbeat.recheck-interval": 5000,  # a DataNode is dead after 20 s, not ten minutes
            "dfs.namenode.stale.datanode.interval": 10_000,
            "dfs.namenode.handler.count": 5,
        }

    def _format(self, say: Say) -> None:
        with make_whole(self._names) as scratch:
            start, _ = _prepare_daemon(
                self._place, scratch.parent, self._make_site(scratch), "-Xmx128m", say, self._kdc
            )
            command = [
                *start,
                "org.apache.hadoop.hdfs.server.namenode.NameNode",
                "-format",
                "-nonInteractive",
                "-force",
            ]
            run_once(command, f"the NameNode's formatting of {self._names}", self.process.log)


class DataNode:
    """A `Part`. Ready means that it has reported its blocks."""

    start_s = 180.0
    stop_s = 20.0

    def __init__(self, place: Place, number: int, datanodes: int, kdc: Kdc | None = None) -> None:
        self.name = f"datanode{number}"
        self.ports: tuple[str, ...] = (self.name, f"{self.name}-http", f"{self.name}-ipc")
        self._place, self._kdc = place, kdc
        self._datanodes = datanodes
        self.process = Process(self.name, place.local)

    @property
    def _folder(self) -> Path:
        return self._place.get_folder("hdfs") / self.name

    def prepare(self, say: Say) -> Command:
        self._place.make_folder("hdfs", say)
        start, configuration = _prepare_daemon(self._place, self._folder, self._make_site(), "-Xmx256m", say, self._kdc)
        return Command((*start, "org.apache.hadoop.hdfs.server.datanode.DataNode"), configuration=configuration)

    def is_ready(self) -> bool:
        activity = _read_bean(self.get_address(), "service=DataNode,name=DataNodeActivity*", self._kdc)
        # Last: one that wants a login logs each connection without.
        return bool(activity.get("BlockReportsNumOps", 0) >= 1 and all(map(is_listening, self._list_listeners())))

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports[f'{self.name}-http']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {}

    def _list_listeners(self) -> list[int]:
        return [self._place.ports[port] for port in self.ports]

    def make_settings(self) -> dict[str, object]:
        """What its core-site.xml and hdfs-site.xml say."""
        return {**_make_core_site(self._place, self._folder), **self._make_site()}

    def _make_site(self) -> dict[str, object]:
        port = self._place.ports
        return {
            "dfs.replication": min(self._datanodes, REPLICAS),
            **COMMON,
            "dfs.datanode.data.dir": (self._folder / "data").as_uri(),
            "dfs.datanode.address": f"{LOOPBACK}:{port[self.name]}",
            "dfs.datanode.http.address": f"{LOOPBACK}:{port[f'{self.name}-http']}",
            "dfs.datanode.ipc.address": f"{LOOPBACK}:{port[f'{self.name}-ipc']}",
            "dfs.datanode.hostname": LOOPBACK,
            **DURABLE,
            # WebHDFS's client runs in a DataNode. By default it sleeps 400 ms for each block that it closes.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": 10,
        }


def _read_bean(address: str, name: str, kdc: Kdc | None) -> dict[str, Any]:
    """Return a daemon's JMX bean of that name, empty if the daemon does not answer."""
    answer = get_json(f"{address}/jmx?qry=Hadoop:{name}", is_secured=kdc is not None)
    beans: list[dict[str, Any]] = answer.get("beans", [])
    return beans[0] if beans else {}


def _prepare_daemon(
    place: Place, folder: Path, settings: dict[str, object], heap: str, say: Say, kdc: Kdc | None
) -> tuple[tuple[str, ...], str]:
    """Write the settings' files; return the start of a Hadoop process's command line, and the settings' text."""
    jars = fetch_class_path("hdfs", say)
    # Hadoop's web server refuses to start without these folders on the class path; they may be empty.
    for webapp in ("hdfs", "datanode"):
        (place.get_folder("hdfs") / "webapps" / webapp / "WEB-INF").mkdir(parents=True, exist_ok=True)
    security = {} if kdc is None else kdc.make_server_settings()
    core = format_hadoop_xml({**_make_core_site(place, folder), **security})
    site = format_hadoop_xml({**settings, **security})
    write_whole(folder / "conf" / "core-site.xml", core)
    write_whole(folder / "conf" / "hdfs-site.xml", site)
    write_whole(folder / "conf" / "log4j.properties", LOGGING)
    path = f"{folder / 'conf'}:{place.get_folder('hdfs')}:{jars}"
    login = () if kdc is None else (f"-Djava.security.krb5.conf={kdc.krb5_conf}",)
    return (*find_java(), "-Xms64m", heap, "-Djava.net.preferIPv4Stack=true", *login, "-cp", path), core + site


def _make_core_site(place: Place, folder: Path) -> dict[str, object]:
    return {
        "fs.defaultFS": f"hdfs://{LOOPBACK}:{place.ports['namenode']}",
        "hadoop.tmp.dir": folder / "tmp",
    }
