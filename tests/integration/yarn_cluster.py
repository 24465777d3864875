"""A YARN of one node beside the embedded stack, whose HDFS keeps the files of applications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from tests.integration.lane import Lane
from tests.own_stack import ROOT

from onceover.config.os_user import name_user
from onceover_local.stack import Stack
from onceover_local.stack.files import write_whole
from onceover_local.stack.place import Place
from onceover_local.stack.ports import Ports
from onceover_local.stack.process import wait_for
from onceover_local.stack.yarn import NodeManager, ResourceManager, make_spark_defaults

EXECUTORS = {"spark.executor.instances": "2", "spark.executor.cores": "1"}


class YarnCluster:
    """The ResourceManager and the NodeManager. `settings` is the folder of Spark's and Hadoop's settings."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        place = Place(stack.local, ROOT, Ports(stack.local / "ports.json"))
        self.resources, self.node = ResourceManager(place), NodeManager(place)

    def start(self) -> None:
        """Start what does not run."""
        self._stack.up({"yarn"})
        folder = (self._stack.local / "yarn").resolve()
        self.settings, self.state, self._logs = (folder / name for name in ("client", "state", "logs"))

    def stop(self) -> None:
        for part in (self.node, self.resources):
            self._stack.stop_part(part.name)

    def write_defaults(self, more: Mapping[str, str]) -> None:
        """Write the spark-defaults.conf of jobs that start from now on."""
        lines = (f"{key} {value}\n" for key, value in {**make_spark_defaults(), **EXECUTORS, **more}.items())
        write_whole(self.settings / "spark-defaults.conf", "".join(lines))

    def kill_resources(self) -> None:
        """End the ResourceManager as a power cut does."""
        self._stack.kill_part(self.resources.name)

    def end_application(self, application: str) -> None:
        """Kill the application as an operator does, and wait for its end."""
        address = f"{self.resources.get_address()}/ws/v1/cluster/apps/{application}/state?user.name={name_user()}"
        header = {"X-XSRF-HEADER": ""}

        def is_killed() -> bool:
            return requests.put(address, json={"state": "KILLED"}, headers=header, timeout=30).status_code == 200

        wait_for(is_killed, 60, "the application's end")

    def list_applications(self) -> list[Mapping[str, Any]]:
        """Return all applications, the oldest first."""
        found = (self.resources.read("apps").get("apps") or {}).get("app", [])
        return sorted(found, key=lambda app: app["startedTime"])

    def list_ends(self, lane: Lane) -> list[tuple[str, str]]:
        """Return the job and the outcome of each application of that pipeline."""
        of_it = [app for app in self.list_applications() if app["name"].endswith(f" {lane.name}")]
        return [(app["name"].split()[1], app["finalStatus"]) for app in of_it]

    def list_executors(self) -> list[psutil.Process]:
        """Return the processes of Spark's executors on the node."""
        return [each for each, line in self._list_java() if "YarnCoarseGrainedExecutorBackend" in line]

    def kill_executors(self) -> None:
        """Kill them all, with their workers of Python, as the end of a machine does."""
        executors = self.list_executors()
        assert executors
        for each in [child for parent in executors for child in (*parent.children(recursive=True), parent)]:
            with suppress(psutil.NoSuchProcess):
                each.kill()

    def list_containers(self) -> list[psutil.Process]:
        """Return the processes of Java that run for applications."""
        return [each for each, _ in self._list_java()]

    def list_logs(self) -> list[Path]:
        """Return the files in which applications log."""
        return [each for each in self._logs.rglob("*") if each.is_file()]

    def _list_java(self) -> Iterator[tuple[psutil.Process, str]]:
        pid = self.node.process.find_pid()
        for each in psutil.Process(pid).children(recursive=True) if pid else ():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if each.name() == "java":
                    yield each, " ".join(each.cmdline())


@contextmanager
def open_yarn(stack: Stack) -> Iterator[YarnCluster]:
    """Start the cluster, on which jobs run within the block."""
    cluster = YarnCluster(stack)
    try:
        cluster.start()
        cluster.write_defaults({})
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
            environment.setenv("HADOOP_CONF_DIR", str(cluster.settings))
            environment.setenv("SPARK_CONF_DIR", str(cluster.settings))
            environment.setenv("ONCEOVER_SPARK", "yarn")
            yield cluster
    finally:
        cluster.stop()
