"""The embedded ZooKeeper: one server, from HDFS's jars."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from onceover_local.stack.files import format_properties, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import LOGGING, find_java
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK, is_listening
from onceover_local.stack.process import Command, Process


class ZooKeeper:
    """A `Part`. Ready means that it answers `srvr`."""

    name = "zookeeper"
    ports: tuple[str, ...] = ("zookeeper",)
    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        jars = fetch_class_path("hdfs", say)
        folder = self._place.make_folder(self.name, say)
        (folder / "data").mkdir(exist_ok=True)
        settings = format_properties(
            {
                "dataDir": folder / "data",
                "clientPort": self._place.ports["zookeeper"],
                "clientPortAddress": LOOPBACK,
                "tickTime": 1000,  # of milliseconds; sessions last between 2 and 20 of them
                "admin.enableServer": "false",
                "4lw.commands.whitelist": "srvr",
            }
        )
        configuration = folder / "zoo.cfg"
        write_whole(configuration, settings)
        write_whole(folder / "conf" / "log4j.properties", LOGGING)
        path = f"{folder / 'conf'}:{jars}"
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        argv = (*find_java(), "-Xms32m", "-Xmx128m", "-Djava.net.preferIPv4Stack=true", "-cp", path, main)
        return Command((*argv, str(configuration)), configuration=settings)

    def is_ready(self) -> bool:
        if not is_listening(self._place.ports["zookeeper"]):
            return False
        try:
            with socket.create_connection((LOOPBACK, self._place.ports["zookeeper"]), timeout=2) as connection:
                connection.sendall(
                    b"srvr"
                )  # `ruok` is answered too early: no session can be opened before data is read
                return connection.recv(64).startswith(b"Zookeeper version")
        except OSError:
            return False

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['zookeeper']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"zookeeper": self.get_address()}
