"""The embedded YARN: a ResourceManager that keeps its applications over a restart, and one NodeManager. The files of
applications are on the embedded HDFS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onceover_local.stack.files import format_hadoop_xml, write_whole
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import LOGGING, find_java, get_json
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK
from onceover_local.stack.process import Command, Process
from onceover_local.stack.spark import find_spark_home

QUEUE: Final = "onceover"
MEMORY_MB: Final = 4096
"""Of all containers together."""
_SERVER: Final = "org.apache.hadoop.yarn.server"
_RM: Final = "yarn.resourcemanager"
_DOORS: Final = ("", "scheduler", "resource-tracker", "admin", "webapp")
"""Of the ResourceManager: for clients, applications, NodeManagers, operators and browsers."""


class ResourceManager:
    """A `Part`. Ready means that it answers and schedules."""

    name = "resourcemanager"
    ports: tuple[str, ...] = tuple(f"resourcemanager-{door or 'client'}" for door in _DOORS)
    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        folder = self._place.make_folder("yarn", say)
        _write_client(self._place, folder / "client")
        site = _make_common(self._place) | {
            # Applications go on while this process is down: NodeManagers and applications find it again.
            f"{_RM}.recovery.enabled": "true",
            f"{_RM}.store.class": f"{_SERVER}.resourcemanager.recovery.FileSystemRMStateStore",
            f"{_RM}.fs.state-store.uri": (folder / "state").as_uri(),
            f"{_RM}.work-preserving-recovery.scheduling-wait-ms": 0,
            f"{_RM}.nodemanagers.heartbeat-interval-ms": 200,
            f"{_RM}.webapp.rest-csrf.enabled": "true",  # a page in a browser may send POSTs to any port
            "yarn.webapp.ui-actions.enabled": "false",
        }
        scheduling = {
            "yarn.scheduler.capacity.root.queues": f"default,{QUEUE}",
            **{f"yarn.scheduler.capacity.root.{queue}.capacity": 50 for queue in ("default", QUEUE)},
            **{f"yarn.scheduler.capacity.root.{queue}.maximum-capacity": 100 for queue in ("default", QUEUE)},
            **{f"yarn.scheduler.capacity.root.{queue}.user-limit-factor": 2 for queue in ("default", QUEUE)},
            "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
        }
        return _make_command(self._place, folder, self.name, f"resourcemanager.{ResourceManager.__name__}", site,
                             say, scheduling)  # fmt: skip

    def is_ready(self) -> bool:
        return bool(self.read("info").get("clusterInfo", {}).get("state") == "STARTED")

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports['resourcemanager-webapp']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"yarn": self.get_address()}

    def read(self, what: str) -> dict[str, Any]:
        """Return what its REST interface says of `what`, such as `metrics` or `apps`; empty if it does not answer."""
        return get_json(f"{self.get_address()}/ws/v1/cluster/{what}")


class NodeManager:
    """A `Part`. Ready means that the ResourceManager has it as an active node."""

    name = "nodemanager"
    ports: tuple[str, ...] = ("nodemanager", "nodemanager-localizer", "nodemanager-webapp")
    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        folder, port = self._place.make_folder("yarn", say), self._place.ports
        site = _make_common(self._place) | {
            "yarn.nodemanager.hostname": LOOPBACK,
            "yarn.nodemanager.bind-host": LOOPBACK,
            "yarn.nodemanager.address": f"{LOOPBACK}:{port['nodemanager']}",
            "yarn.nodemanager.localizer.address": f"{LOOPBACK}:{port['nodemanager-localizer']}",
            "yarn.nodemanager.webapp.address": f"{LOOPBACK}:{port['nodemanager-webapp']}",
            "yarn.nodemanager.resource.memory-mb": MEMORY_MB,
            "yarn.nodemanager.resource.cpu-vcores": 4,
            "yarn.nodemanager.vmem-check-enabled": "false",  # Java reserves more than it uses
            "yarn.nodemanager.local-dirs": folder / "local",
            "yarn.nodemanager.log-dirs": folder / "logs",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,SPARK_LOCAL_IP",
        }
        return _make_command(self._place, folder, self.name, f"nodemanager.{NodeManager.__name__}", site, say)

    def is_ready(self) -> bool:
        nodes = (ResourceManager(self._place).read("nodes").get("nodes") or {}).get("node", [])
        own = f":{self._place.ports['nodemanager']}"
        return any(each["id"].endswith(own) and each["state"] == "RUNNING" for each in nodes)

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports['nodemanager-webapp']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {}


def _write_client(place: Place, folder: Path) -> None:
    """Write the configuration of a client, for HADOOP_CONF_DIR and SPARK_CONF_DIR. Its driver listens on loopback."""
    write_whole(folder / "core-site.xml", format_hadoop_xml(_make_core(place)))
    write_whole(folder / "yarn-site.xml", format_hadoop_xml(_make_common(place)))
    defaults = "".join(f"{key} {value}\n" for key, value in make_spark_defaults().items())
    write_whole(folder / "spark-defaults.conf", defaults)


def make_spark_defaults() -> dict[str, str]:
    """Return Spark's settings. Four containers fit on the node: say, two applications of one executor."""
    return {
        "spark.yarn.jars": f"local:{find_spark_home()}/jars/*",
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.yarn.am.memory": "256m",
    }


def _make_core(place: Place) -> dict[str, object]:
    return {"fs.defaultFS": f"hdfs://{LOOPBACK}:{place.ports['namenode']}"}


def _make_common(place: Place) -> dict[str, object]:
    """Return what servers and clients know alike."""
    doors = zip(_DOORS, ResourceManager.ports, strict=True)
    return {
        f"{_RM}.hostname": LOOPBACK,
        **{f"{_RM}.{door}.address".replace("..", "."): f"{LOOPBACK}:{place.ports[port]}" for door, port in doors},
        f"{_RM}.connect.retry-interval.ms": 1000,
    }


def _make_command(
    place: Place,
    folder: Path,
    name: str,
    main: str,
    site: dict[str, object],
    say: Say,
    scheduling: dict[str, object] | None = None,
) -> Command:
    for web in ("cluster", "node", "yarn", "static"):  # Hadoop's web server wants the folders, which may be empty
        (folder / "webapps" / web / "WEB-INF").mkdir(parents=True, exist_ok=True)
    configuration = folder / name / "conf"
    texts = {
        "core-site.xml": format_hadoop_xml({**_make_core(place), "hadoop.tmp.dir": folder / name / "tmp"}),
        "yarn-site.xml": format_hadoop_xml(site),
        "capacity-scheduler.xml": format_hadoop_xml(scheduling or {}),
        "log4j.properties": LOGGING,
    }
    for file, text in texts.items():
        write_whole(configuration / file, text)
    java, *lean = find_java()
    options = (*lean, "-Xms64m", "-Xmx384m", "-Djava.net.preferIPv4Stack=true",
               "--add-opens=java.base/java.lang=ALL-UNNAMED")  # fmt: skip
    path = f"{configuration}:{folder}:{fetch_class_path('yarn', say)}"
    environment = {
        "HADOOP_CONF_DIR": str(configuration),
        "JAVA_HOME": str(Path(os.path.realpath(java)).parents[1]),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    return Command((java, *options, "-cp", path, f"{_SERVER}.{main}"), environment, "".join(texts.values()))
