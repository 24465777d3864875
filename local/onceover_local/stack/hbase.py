"""The embedded HBase: master, region server and ZooKeeper in one process, and a Thrift server in another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

import happybase
from thriftpy2.thrift import TException

from onceover_local.stack.files import format_hadoop_xml, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import LOGGING, find_java
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process

_OPENED: Final = ("java.lang", "java.lang.reflect", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")


class HBase:
    """A `Part`. Its files are on the embedded HDFS, each write in its log on the DataNodes, which survives a kill."""

    name = "hbase"
    ports: tuple[str, ...] = ("hbase-master", "hbase-region", "hbase-zookeeper")
    start_s = 180.0
    stop_s = 60.0

    def __init__(self, place: Place, datanodes: int = 1) -> None:
        self._place, self._datanodes = place, datanodes
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        return _make_command(
            self._place, self._datanodes, say, "-Xmx512m", "org.apache.hadoop.hbase.master.HMaster", "start"
        )

    def is_ready(self) -> bool:
        return all(is_listening(self._place.ports[port]) for port in self.ports)

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['hbase-master']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {}


class HBaseThrift:
    """A `Part`. Ready means that a row of each enabled table can be read: after a start the master assigns the regions
    of one table after another, and a client that reads earlier waits longer than its timeout."""

    name = "hbase-thrift"
    ports: tuple[str, ...] = ("hbase-thrift",)
    start_s = 180.0
    stop_s = 20.0

    def __init__(self, place: Place, datanodes: int = 1) -> None:
        self._place, self._datanodes = place, datanodes
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        port = str(self._place.ports["hbase-thrift"])
        main = "org.apache.hadoop.hbase.thrift.ThriftServer"
        return _make_command(self._place, self._datanodes, say, "-Xmx256m", main, "start", "-b", LOOPBACK, "-p", port)

    def is_ready(self) -> bool:
        if not is_listening(self._place.ports["hbase-thrift"]):
            return False
        try:
            connection = happybase.Connection(LOOPBACK, self._place.ports["hbase-thrift"], timeout=5000)
            with closing(connection):
                for name in connection.tables():
                    if connection.is_table_enabled(name):
                        next(connection.table(name).scan(limit=1), None)
        except (TException, OSError):
            return False
        return True

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['hbase-thrift']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"hbase": self.get_address()}


def _make_command(place: Place, datanodes: int, say: Say, heap: str, *main: str) -> Command:
    jars, folder, ports = fetch_class_path("hbase", say), place.make_folder("hbase", say), place.ports
    site = format_hadoop_xml(
        {
            "hbase.cluster.distributed": "false",
            "hbase.rootdir": f"hdfs://{LOOPBACK}:{ports['namenode']}/hbase",
            "hbase.tmp.dir": folder / "tmp",
            "hbase.zookeeper.quorum": LOOPBACK,
            "hbase.zookeeper.property.clientPort": ports["hbase-zookeeper"],
            "hbase.zookeeper.property.dataDir": folder / "zookeeper",
            "hbase.master.hostname": LOOPBACK,
            "hbase.regionserver.hostname": LOOPBACK,
            "hbase.master.ipc.address": LOOPBACK,
            "hbase.regionserver.ipc.address": LOOPBACK,
            "hbase.master.port": ports["hbase-master"],
            "hbase.regionserver.port": ports["hbase-region"],
            "hbase.master.info.port": -1,
            "hbase.regionserver.info.port": -1,
            "hbase.thrift.info.port": -1,
            "hbase.coprocessor.user.enabled": "false",  # a table's own classes would run as the server's user
            # The table of regions names this one itself, without which no region is ever split.
            "hbase.coprocessor.region.classes": "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
            "hbase.wal.provider": "filesystem",
            "dfs.replication": datanodes,
            "hbase.regionserver.handler.count": 5,
            "hbase.regionserver.msginterval": 200,
            "hbase.client.pause": 20,
            # Its ZooKeeper stops before it does: retries at shutdown would only cost time.
            "zookeeper.recovery.retry": 1,
            "zookeeper.recovery.retry.intervalmill": 200,
            "hbase.master.start.timeout.localHBaseCluster": 120_000,
        }
    )
    write_whole(folder / "conf" / "hbase-site.xml", site)
    write_whole(folder / "conf" / "log4j.properties", LOGGING)
    opened = (f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED)
    path = f"{folder / 'conf'}:{jars}"
    argv = (*find_java(), "-Xms64m", heap, "-Djava.net.preferIPv4Stack=true", *opened, "-cp", path, *main)
    return Command(argv, configuration=site)
