"""An HDFS of two NameNodes over a quorum of JournalNodes, each with a controller that fails over by itself, as Hadoop's
own guide sets it up, also with Kerberos. All parts are processes on loopback, and no one but the controllers makes a
NameNode active."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.power import cut_power
from tests.integration.secured_hdfs import VARIABLES

from onceover_local.stack.files import format_hadoop_xml, write_whole
from onceover_local.stack.hdfs import COMMON, DataNode, NameNode
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.kerberos import Kdc
from onceover_local.stack.part import LOGGING, find_java, get_json
from onceover_local.stack.place import Place
from onceover_local.stack.ports import LOOPBACK, Ports
from onceover_local.stack.process import Command, Process, run_once, wait_for
from onceover_local.stack.zookeeper import ZooKeeper

NAME_SERVICE = "twins"
NAMENODES = ("namenode1", "namenode2")
JOURNALNODES = ("journalnode1", "journalnode2", "journalnode3")
DATANODES = (1, 2)
START_SECONDS = 120.0
_MAIN = "org.apache.hadoop.hdfs"
_RPC, _HTTP = "dfs.namenode.rpc-address", "dfs.namenode.http-address"
# An append is logged when it has been opened: only then is one under way.
_LOGGING = LOGGING.replace("hdfs.StateChange=INFO", "hdfs.StateChange=DEBUG")
_OPENED = re.compile(r"NameNode\.append: file|NameSystem\.startFile: src")


class Daemon:
    """One process of the cluster, by its settings; it logs in where there is a KDC."""

    def __init__(self, place: Place, name: str, main: str, settings: Mapping[str, object], kdc: Kdc | None) -> None:
        self.name, self._main = name, f"{_MAIN}.{main}"
        self._folder = place.local / name
        self._login: tuple[str, ...] = ()
        if kdc is not None:
            # NameNodes ask JournalNodes for edits by the name that their address has: here it is the principal's.
            hosts = self._folder / "hosts"
            write_whole(hosts, f"{LOOPBACK} {LOOPBACK} localhost {socket.gethostname()}\n")
            self._login = (f"-Djava.security.krb5.conf={kdc.krb5_conf}", f"-Djdk.net.hosts.file={hosts}")
        self._site = format_hadoop_xml({**settings, **_list_logins(kdc)})
        self.process = Process(name, place.local)
        for file in ("core-site.xml", "hdfs-site.xml"):
            write_whole(self._folder / "conf" / file, self._site)
        write_whole(self._folder / "conf" / "log4j.properties", _LOGGING)
        for web in ("hdfs", "datanode", "journal"):  # Hadoop's web server wants the folder, which may be empty
            (self._folder / "webapps" / web / "WEB-INF").mkdir(parents=True)

    def _make_argv(self, *arguments: str) -> tuple[str, ...]:
        path = f"{self._folder / 'conf'}:{self._folder}:{fetch_class_path('hdfs', lambda part, what: None)}"
        heap = ("-Xms32m", "-Xmx192m", "-Djava.net.preferIPv4Stack=true")
        return (*find_java(), *heap, *self._login, "-cp", path, self._main, *arguments)

    def run(self, *arguments: str) -> None:
        """Run the program once, to its end."""
        run_once(self._make_argv(*arguments), f"{self.name} {' '.join(arguments)}", self.process.log)

    def start(self) -> None:
        self.process.start(Command(self._make_argv(), configuration=self._site))

    def kill(self) -> None:
        """End the process as a power cut does."""
        cut_power(self.process)


class HaCluster:
    """The cluster. `client` is the folder of the client's configuration, for HADOOP_CONF_DIR."""

    def __init__(self, folder: Path, *, is_secured: bool = False) -> None:
        self._place = place = Place(folder, folder, Ports(folder / "ports.json"))
        self.kdc = Kdc(place) if is_secured else None
        web = [f"{name}-http" for name in (*NAMENODES, *JOURNALNODES)]
        self._datanodes = [DataNode(place, number, len(DATANODES)) for number in DATANODES]
        controllers = [f"{name}-controller" for name in NAMENODES]
        own = ("namenode", "namenode-http")  # which the embedded NameNode's settings name, and these replace
        place.ports.settle((*ZooKeeper.ports, *Kdc.ports, *NAMENODES, *JOURNALNODES, *web, *controllers, *own,
                            *(port for each in self._datanodes for port in each.ports)))  # fmt: skip
        self._zookeeper = ZooKeeper(place)
        self.client = folder / "client"
        login = (
            {} if self.kdc is None else {**self.kdc.make_settings(), "hadoop.kerberos.min.seconds.before.relogin": 1}
        )
        write_whole(self.client / "hdfs-site.xml", format_hadoop_xml({**self._make_client_site(), **login}))
        core = {"fs.defaultFS": f"hdfs://{NAME_SERVICE}", **login}
        write_whole(self.client / "core-site.xml", format_hadoop_xml(core))
        common = {**self._make_client_site(), **self._make_shared_site(), "fs.defaultFS": f"hdfs://{NAME_SERVICE}"}
        self._journals = [self._make_journal(name, common) for name in JOURNALNODES]
        self.namenodes = {name: self._make_namenode(name, common) for name in NAMENODES}
        self._controllers = [
            Daemon(place, f"{name}-controller", "tools.DFSZKFailoverController",
                   {**common, "dfs.ha.namenode.id": name, "hadoop.tmp.dir": folder / "tmp"}, self.kdc)
            for name in NAMENODES
        ]  # fmt: skip
        self.datanodes = [
            Daemon(place, each.name, "server.datanode.DataNode", {**each.make_settings(), **common}, self.kdc)
            for each in self._datanodes
        ]

    @property
    def addresses(self) -> dict[str, str]:
        """The web address of each NameNode."""
        return {name: f"http://{self._at(f'{name}-http')}" for name in NAMENODES}

    def find_active(self) -> str | None:
        """Return the name of the active NameNode, None while there is none."""
        return next((name for name in NAMENODES if self._read(name, "NameNodeStatus").get("State") == "active"), None)

    def wait_for_active(self) -> str:
        """Wait until there is an active NameNode; return its name."""
        wait_for(lambda: self.find_active() is not None, START_SECONDS, "an active NameNode")
        active = self.find_active()
        assert active is not None
        return active

    def wait_for_both(self) -> None:
        """Wait until one NameNode serves and the other could."""
        self.wait_for_active()
        wait_for(lambda: all(map(self._has_all_blocks, NAMENODES)), START_SECONDS, "both NameNodes to know all blocks")

    def kill_datanode(self) -> None:
        """Kill one, and wait until the active NameNode counts on it no more."""
        self.datanodes[0].kill()
        active = self.wait_for_active()
        lacking = "UnderReplicatedBlocks"
        wait_for(lambda: self._read(active, "FSNamesystem").get(lacking, 0) > 0, START_SECONDS, "a DataNode's end")

    def count_opened(self, name: str) -> int:
        """Return how many files that NameNode has opened to be written."""
        return len(_OPENED.findall(self.namenodes[name].process.log.read_text()))

    def list_ports(self) -> list[int]:
        """Return the ports at which DataNodes serve clients, by HDFS's own protocol and by WebHDFS."""
        return [self._place.ports[f"{each.name}{kind}"] for each in self.datanodes for kind in ("", "-http")]

    def start(self) -> None:
        if self.kdc is not None:
            self.kdc.process.start(self.kdc.prepare(lambda part, what: None))
            wait_for(self.kdc.is_ready, START_SECONDS, "the KDC")
            self.kdc.finish(lambda part, what: None)
        self._zookeeper.process.start(self._zookeeper.prepare(lambda part, what: None))
        for journal in self._journals:
            journal.start()
        wait_for(self._zookeeper.is_ready, START_SECONDS, "ZooKeeper")
        first, second = (self.namenodes[name] for name in NAMENODES)
        first.run("-format", "-nonInteractive", "-force")
        shutil.copytree(self._name_folder(NAMENODES[0]), self._name_folder(NAMENODES[1]))
        self._controllers[0].run("-formatZK", "-nonInteractive", "-force")
        for each in (first, second, *self.datanodes, *self._controllers):
            each.start()
        self.wait_for_both()

    def revive(self) -> None:
        """Start the processes that a test has killed."""
        for each in (*self.namenodes.values(), *self.datanodes):
            if each.process.find_pid() is None:
                each.start()
        self.wait_for_both()

    def stop(self) -> None:
        daemons = (*self._controllers, *self.datanodes, *self.namenodes.values(), *self._journals)
        kdc = () if self.kdc is None else (self.kdc.process,)
        for process in (*(each.process for each in daemons), self._zookeeper.process, *kdc):
            process.stop(deadline_s=0)

    def _has_all_blocks(self, name: str) -> bool:
        state = self._read(name, "FSNamesystemState")
        reported = self._read(name, "NameNodeActivity").get("StorageBlockReportNumOps", 0)
        alive = state.get("NumLiveDataNodes", 0) == len(DATANODES)
        return bool(state.get("FSState") == "Operational" and alive and reported >= len(DATANODES))

    def _read(self, name: str, bean: str) -> Mapping[str, Any]:
        address = f"{self.addresses[name]}/jmx?qry=Hadoop:service=NameNode,name={bean}"
        found: list[Mapping[str, Any]] = get_json(address, is_secured=self.kdc is not None).get("beans", [])
        return found[0] if found else {}

    def _at(self, port: str) -> str:
        return f"{LOOPBACK}:{self._place.ports[port]}"

    def _name_folder(self, name: str) -> Path:
        return self._place.local / name / "names"

    def _make_client_site(self) -> dict[str, object]:
        """Return what Hadoop's guide has a client know of a name service."""
        provider = f"{_MAIN}.server.namenode.ha.ConfiguredFailoverProxyProvider"
        return {
            "dfs.nameservices": NAME_SERVICE,
            f"dfs.ha.namenodes.{NAME_SERVICE}": ",".join(NAMENODES),
            **{f"{_RPC}.{NAME_SERVICE}.{name}": self._at(name) for name in NAMENODES},
            **{f"{_HTTP}.{NAME_SERVICE}.{name}": self._at(f"{name}-http") for name in NAMENODES},
            f"dfs.client.failover.proxy.provider.{NAME_SERVICE}": provider,
            "dfs.replication": len(DATANODES),
            **COMMON,
        }

    def _make_shared_site(self) -> dict[str, object]:
        journals = ";".join(map(self._at, JOURNALNODES))
        return {
            "dfs.namenode.shared.edits.dir": f"qjournal://{journals}/{NAME_SERVICE}",
            "dfs.ha.automatic-failover.enabled": "true",
            "ha.zookeeper.quorum": self._zookeeper.get_address(),
            "dfs.ha.fencing.methods": "shell(/bin/true)",  # the quorum refuses the edits of one that was active
            "dfs.ha.tail-edits.period": "1s",
            "dfs.ha.log-roll.period": "2s",  # the other NameNode reads the edits that are rolled
            **{
                f"dfs.ha.zkfc.port.{NAME_SERVICE}.{name}": self._place.ports[f"{name}-controller"] for name in NAMENODES
            },
        }

    def _make_journal(self, name: str, common: Mapping[str, object]) -> Daemon:
        settings = {
            **common,
            "dfs.journalnode.edits.dir": self._place.local / name / "edits",
            "dfs.journalnode.rpc-address": self._at(name),
            "dfs.journalnode.http-address": self._at(f"{name}-http"),
        }
        return Daemon(self._place, name, "qjournal.server.JournalNode", settings, self.kdc)

    def _make_namenode(self, name: str, common: Mapping[str, object]) -> Daemon:
        embedded = NameNode(self._place, len(DATANODES), self.kdc).make_settings()
        del embedded[_RPC], embedded[_HTTP]
        settings = {
            **embedded,
            **common,
            "dfs.ha.namenode.id": name,
            "dfs.namenode.name.dir": self._name_folder(name).as_uri(),
            "hadoop.tmp.dir": self._place.local / name / "tmp",
        }
        return Daemon(self._place, name, "server.namenode.NameNode", settings, self.kdc)


def _list_logins(kdc: Kdc | None) -> dict[str, object]:
    """Return what a server's settings say of its login; JournalNodes have names of their own for it."""
    if kdc is None:
        return {}
    common = kdc.make_server_settings()
    web = common["dfs.web.authentication.kerberos.principal"]
    return {
        **common,
        "dfs.journalnode.kerberos.principal": common["dfs.namenode.kerberos.principal"],
        "dfs.journalnode.keytab.file": common["dfs.namenode.keytab.file"],
        **{f"dfs.{each}.kerberos.internal.spnego.principal": web for each in ("namenode", "journalnode")},
    }


@contextmanager
def open_ha_cluster(folder: Path, *, is_secured: bool = False) -> Iterator[HaCluster]:
    """Start the cluster, which is the HDFS of this process and what it starts; end its processes after the block."""
    cluster = HaCluster(folder, is_secured=is_secured)
    with pytest.MonkeyPatch.context() as environment:
        for name in VARIABLES:
            environment.setenv(name, "")  # and is as before after the block
        try:
            cluster.start()
            environment.setenv("HADOOP_CONF_DIR", str(cluster.client))
            environment.setenv("ONCEOVER_WEBHDFS", ";".join(cluster.addresses.values()))
            environment.setenv("ONCEOVER_HDFS", f"hdfs://{NAME_SERVICE}")
            yield cluster
        finally:
            cluster.stop()
