"""A clone of the working tree, and the containers that docker-compose.yml makes of it on this machine's engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = "onceover-test"
ONCE: Final = {"raw-folder", "airflow-migrate", "airflow-pool"}
"""Services that end."""


def run(*command: str, cwd: Path = ROOT, code: int = 0, **more: Any) -> str:
    """Run the command, which must exit with that code, and return what it prints."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more
    )
    assert done.returncode == code, f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-4000:]}"
    return done.stdout


def wait_until(holds: Callable[[], object], seconds: float, what: Callable[[], object], every: float = 0.5) -> None:
    """Wait until `holds` is true. Fails at the deadline with what `what` returns then."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what()}"
        time.sleep(every)


@dataclass(slots=True)
class Deployment:
    """The containers of one clone."""

    clone: Path
    secrets: dict[str, str] = field(default_factory=dict)

    def make(self) -> None:
        """Copy the working tree as `git clone` does under umask 077, and write .env by the compose file's recipe."""
        files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z").encode()
        pack = subprocess.run(["tar", "-c", "--null", "-T-"], cwd=ROOT, input=files, capture_output=True, check=True)
        subprocess.run(
            ["tar", "-x", "--no-same-permissions"], cwd=self.clone, input=pack.stdout, check=True, umask=0o077
        )
        recipe = re.search(r"^# {3}\(umask.*?\)'\)$", self.file.read_text(), re.MULTILINE | re.DOTALL)
        assert recipe is not None
        python = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        run("sh", "-ec", re.sub(r"^# {3}", "", recipe[0], flags=re.MULTILINE), cwd=self.clone, env=python)
        self.secrets = dict(line.split("=", 1) for line in (self.clone / ".env").read_text().splitlines())

    @property
    def file(self) -> Path:
        return self.clone / "docker-compose.yml"

    def compose(self, *arguments: str, code: int = 0) -> str:
        return run("docker", "compose", "--project-name", PROJECT, *arguments, cwd=self.clone, code=code)

    def onceover(self, *arguments: str, code: int = 0) -> str:
        """Run a command of Onceover where the scheduler runs, as a person."""
        person = ("-e", "COLUMNS=200", "-e", "HADOOP_USER_NAME=oncall")
        return self.compose("exec", "-T", *person, "scheduler", "onceover", *arguments, code=code)

    def list_containers(self) -> list[dict[str, Any]]:
        return list(map(json.loads, self.compose("ps", "--all", "--format", "json").splitlines()))

    def read_states(self) -> dict[str, str]:
        """Return each service's health, `running` without a test, or `exited` with a code."""

        def name_state(each: dict[str, Any]) -> str:
            return f"exited {each['ExitCode']}" if each["State"] == "exited" else each["Health"] or each["State"]

        return {each["Service"]: name_state(each) for each in self.list_containers()}

    def require_up(self) -> None:
        """Wait until every service runs, and is healthy where it has a test; those that end have ended well."""
        services = set(self.compose("config", "--services").split())

        def is_up() -> bool:
            states = self.read_states()
            ended = {name for name, state in states.items() if state == "exited 0"}
            ready = {name for name, state in states.items() if state in ("running", "healthy")}
            return ended == ONCE and ready == services - ONCE

        wait_until(is_up, 240, self.read_states)

    def inspect(self, service: str) -> dict[str, Any]:
        (found,) = json.loads(run("docker", "inspect", f"{PROJECT}-{service}-1"))
        assert isinstance(found, dict)
        return found

    def find_pid(self, service: str) -> int:
        """Return the service's first process, which a test kills as a crash does: `docker kill` prevents a restart."""
        return int(self.inspect(service)["State"]["Pid"])

    def crash(self, service: str) -> None:
        """Kill the service and wait until the engine has started it again."""
        count = self.inspect(service)["RestartCount"]
        os.kill(self.find_pid(service), signal.SIGKILL)
        wait_until(lambda: self.inspect(service)["RestartCount"] > count, 60, lambda: f"{service} stays down")

    def find_volume(self, name: str) -> Path:
        """Return the volume's folder on this machine."""
        return Path(run("docker", "volume", "inspect", "--format", "{{.Mountpoint}}", f"{PROJECT}_{name}").strip())

    def read_log(self, service: str) -> str:
        return self.compose("logs", "--no-color", "--no-log-prefix", service)

    def require_no_secret(self) -> None:
        """Fail if a secret is in a log, a command line, or a file that Airflow or Spark writes for people to read."""
        lines = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended meanwhile
                lines.append(file.read_bytes())
        assert any(b"kafka.Kafka" in line for line in lines), "no command line of a container was read"
        texts = {"command lines": b"\n".join(lines).decode(errors="replace")}
        for each in self.list_containers():
            texts[each["Name"]] = run("docker", "logs", each["Name"])
        for file in (self.find_volume("airflow") / "logs").rglob("*.log"):
            texts[str(file)] = file.read_text(errors="replace")
        for worker in ("spark-worker1", "spark-worker2"):
            find = "find /tmp/spark -type f -name 'std*' -exec cat {} +"
            texts[f"work of {worker}"] = self.compose("exec", "-T", worker, "sh", "-c", find)
        assert len(texts) > 20
        found = [(where, name) for where, t in texts.items() for name, s in self.secrets.items() if s.rstrip("=") in t]
        assert not found, found
