"""The embedded Spark standalone cluster: a master, and workers as processes of their own, as on other machines."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onceover.spark.class_archive import make_kerberos_options
from onceover_local.stack.files import make_secret, write_whole
from onceover_local.stack.part import find_java, get_json
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK
from onceover_local.stack.process import Command, Process

CORES_OF_AN_APPLICATION: Final = 2
"""An application's default: ingest never ends, and a repair that runs meanwhile needs cores too."""
_CORES: Final = 2
_MEMORY: Final = "3g"


def find_spark_home() -> str:
    """Return the folder of the installed pyspark, which holds Spark's jars and scripts."""
    spec = importlib.util.find_spec("pyspark")  # not imported: that takes a second
    return str(Path(spec.origin).parent) if spec and spec.origin else ""


def make_master_url(place: Place) -> str:
    return f"spark://{LOOPBACK}:{place.ports[SparkMaster.name]}"


class SparkMaster:
    """A `Part`. Ready means that the master is alive."""

    name = "spark-master"
    ports: tuple[str, ...] = (name, f"{name}-http")
    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place) -> None:
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        port = self._place.ports
        options = (
            f"-Dspark.deploy.defaultCores={CORES_OF_AN_APPLICATION} -Dspark.master.rest.enabled=false "
            "-Dspark.ui.killEnabled=false"
        )
        where = ("--host", LOOPBACK, "--port", str(port[self.name]), "--webui-port", str(port[f"{self.name}-http"]))
        folder = self._place.make_folder("spark", say)
        return _make_command(self._place, "master.Master", where, folder, {"SPARK_MASTER_OPTS": options})

    def is_ready(self) -> bool:
        return bool(read_state(self._place).get("status") == "ALIVE")

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports[f'{self.name}-http']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"spark": make_master_url(self._place)}


class SparkWorker:
    """A `Part`. Ready means that the master has registered it."""

    start_s = 120.0
    stop_s = 20.0

    def __init__(self, place: Place, number: int) -> None:
        self.name = f"spark-worker{number}"
        self.ports: tuple[str, ...] = (self.name, f"{self.name}-http")
        self._place = place
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        port = self._place.ports
        where = ("--host", LOOPBACK, "--port", str(port[self.name]), "--webui-port", str(port[f"{self.name}-http"]))
        room = ("--cores", str(_CORES), "--memory", _MEMORY)
        folder = self._place.make_folder("spark", say)
        work = folder / self.name
        work.mkdir(exist_ok=True)
        # Executors' logs are kept for a day: they show why a repair failed.
        options = "-Dspark.worker.cleanup.enabled=true -Dspark.worker.cleanup.appDataTtl=86400"
        return _make_command(
            self._place,
            "worker.Worker",
            (*where, *room, "--work-dir", str(work), make_master_url(self._place)),
            folder,
            {"SPARK_WORKER_OPTS": options},
        )

    def is_ready(self) -> bool:
        port = self._place.ports[self.name]
        workers = read_state(self._place).get("workers", [])
        return any(each["port"] == port and each["state"] == "ALIVE" for each in workers)

    def finish(self, say: Say) -> None:
        pass

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports[f'{self.name}-http']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {}


def read_state(place: Place) -> dict[str, Any]:
    """Return the master's state, workers and applications; empty if it does not answer."""
    return get_json(f"http://{LOOPBACK}:{place.ports[f'{SparkMaster.name}-http']}/json/")


def make_defaults(secret: str) -> str:
    """Return the spark-defaults.conf of master and workers, which ask each other and each application for the secret;
    a worker passes it on to executors in their environment."""
    return f"spark.authenticate true\nspark.authenticate.secret {secret}\n"


def _make_command(
    place: Place, what: str, arguments: tuple[str, ...], folder: Path, options: Mapping[str, str]
) -> Command:
    """Return the command of Spark's own script, which opens the Java modules that Spark needs, with a configuration
    folder of our own."""
    _, *lean = find_java()
    configuration = folder / "conf"
    defaults = make_defaults(make_secret(place.local / "secrets", "spark"))
    write_whole(configuration / "spark-defaults.conf", defaults, mode=0o600)
    environment = {
        "SPARK_HOME": find_spark_home(),
        "SPARK_CONF_DIR": str(configuration),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join([*lean, *make_kerberos_options(os.environ)]),
        "SPARK_NO_DAEMONIZE": "1",
        **options,
    }
    argv = (f"{find_spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{what}", *arguments)
    return Command(argv, environment, configuration=defaults)
