"""`make test-containers`: docker-compose.yml on this machine's engine, from the image's build to the last `down`."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psycopg
import pytest
from tests.compose.deployment import ROOT, Deployment, run, wait_until

from onceover.errors import OnceoverError, TerminalError
from onceover_demo import flights, ledger_facts, oracle
from onceover_local.airflow_rest import AirflowRest

KAFKA: Final = "127.0.0.1:29092"
POSTGRES: Final = "postgresql://onceover@127.0.0.1:5432/onceover"
AIRFLOW: Final = "http://127.0.0.1:8080"
DAYS: Final = 14
KILLED: Final = (
    *("ingest", "datanode1", "namenode", "kafka", "postgres", "spark-worker1", "spark-master"),
    *("api-server", "scheduler", "dag-processor", "triggerer"),
)
STEPS: Final = (
    *("build", "format", "up", "kills", "secrets"),
    *("doctor", "down_and_up", "users", "tomls", "secrets", "down"),
)
FIRST: Final = datetime(2013, 1, 1, 12, tzinfo=UTC)
"""A window with flights, and the first of those that persons repair."""


class Scenario:
    """One run on one deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        rows = [row for row in flights.csv_rows() if int(row["day"]) <= DAYS]
        self.expected = oracle.expected(rows)
        self.flights = [each for each in flights.january() if each.scheduled_day <= DAYS]
        self.sent = 0

    def log_in(self, user: str) -> AirflowRest:
        return AirflowRest(AIRFLOW, user, self.deployment.secrets[f"AIRFLOW_{user.upper()}_PASSWORD"])

    def send(self, part: float) -> None:
        """Produce that part of the flights that are left."""
        end = self.sent + round((len(self.flights) - self.sent) * part)
        flights.produce(KAFKA, self.flights[self.sent : end], lambda _: None)
        self.sent = end

    def wait_for_lines(self, seconds: float = 300) -> None:
        """Wait until ingest has landed what was sent."""

        def have_landed() -> bool:
            try:
                return ledger_facts.totals(POSTGRES)["lines"] >= self.sent
            except psycopg.Error:  # it is starting, or the ledger has no tables yet
                return False

        wait_until(have_landed, seconds, lambda: self.deployment.read_log("ingest")[-2000:])

    def certify(self) -> None:
        """Have the DAG repair what is wrong; then every window is certified, and every number is right."""
        wait_until(lambda: ledger_facts.is_every_window_closed(POSTGRES), 120, lambda: "windows are open")
        self.repair("admin", "repair_failed_windows", {})

        def are_certified() -> bool:  # by that run, or by one of the schedule that had begun
            states = ledger_facts.windows_by_state(POSTGRES)
            return bool(states) and "not certified" not in states

        wait_until(are_certified, 600, lambda: ledger_facts.windows_by_state(POSTGRES))
        if self.sent == len(self.flights):
            self.require_right()

    def require_right(self) -> None:
        found = oracle.compare(ledger_facts.aggregates(POSTGRES), self.expected)
        assert found.is_equal, found

    def repair(self, user: str, dag: str, conf: Mapping[str, object]) -> None:
        airflow = self.log_in(user)
        airflow.wait_until_healthy(180)
        airflow.wait_for_dag(dag, 180)
        run_id = airflow.trigger(dag, conf)
        state = airflow.wait_for_run(dag, run_id, 900)["state"]
        assert state == "success", [(t["task_id"], t["state"]) for t in airflow.tasks(dag, run_id)]

    # The steps.

    def build(self) -> None:
        """The image is built of a clone under umask 077, whose mounts cannot be read, and say what to do about that."""
        self.deployment.compose("build")
        run("docker", "run", "--rm", "onceover:0.1.0", "onceover", "--version")
        said = self.deployment.compose("run", "--rm", "--no-deps", "ingest", "onceover", "--version", code=78)
        advice = said.strip().splitlines()[-1]
        assert "chmod -R a+rX" in advice, said
        run("sh", "-ec", advice.split("`")[1], cwd=self.deployment.clone)
        self.deployment.compose("run", "--rm", "--no-deps", "ingest", "onceover", "--version")

    def format(self) -> None:
        """A kill in the middle of the NameNode's first format leaves nothing that keeps the next start from one."""
        self.deployment.compose("up", "--detach", "--no-deps", "namenode")
        names, pid = self.deployment.find_volume("namenode"), self.deployment.find_pid("namenode")
        wait_until((names / "format" / "current").exists, 60, lambda: list(names.iterdir()), every=0.001)
        os.kill(pid, signal.SIGKILL)
        assert not (names / "names").exists(), "killed too late"

    def up(self) -> None:
        self.deployment.compose("up", "--detach")
        self.deployment.require_up()
        assert self.deployment.inspect("namenode")["RestartCount"] == 1

    def kills(self) -> None:
        """Each part is killed while flights come in: the engine starts it again, and ingest goes on."""
        flights.create_topic(KAFKA)
        for left, service in enumerate(KILLED):
            self.send(1 / (len(KILLED) + 3 - left))
            self.deployment.crash(service)
            began = time.monotonic()
            self.wait_for_lines()
            print(f"    {service} killed; all {self.sent} landed {time.monotonic() - began:.0f} s later", flush=True)
        self.deployment.require_up()
        self.certify()

    def doctor(self) -> None:
        said = self.deployment.onceover("doctor")
        assert "flights" in said, said
        self.deployment.compose("stop", "kafka")
        said = self.deployment.onceover("doctor", code=1)
        assert "correct ONCEOVER_KAFKA" in said or "ONCEOVER_KAFKA names it" in said, said
        assert "stack up" not in said, said
        self.deployment.compose("start", "kafka")
        self.deployment.require_up()

    def down_and_up(self) -> None:
        """Down and up twice, then stop and start: nothing is lost, no certificate changes, and ingest goes on."""
        for ways in ((("down",), ("up", "--detach")), (("down",), ("up", "--detach")), (("stop",), ("start",))):
            proved = ledger_facts.certificates_and_rows(POSTGRES)
            for way in ways:
                began = time.monotonic()
                self.deployment.compose(*way)
                print(f"    {' '.join(way)}: {time.monotonic() - began:.0f} s", flush=True)
            self.deployment.require_up()
            assert ledger_facts.certificates_and_rows(POSTGRES) == proved
            self.send(0.5 if ways[0] == ("down",) else 1)
            self.wait_for_lines()
            self.certify()
        assert self.sent == len(self.flights)
        self.deployment.onceover("sweep", "flights")

    def users(self) -> None:
        """A viewer may not repair; the others may, and so may a person's command."""
        for number, user in enumerate(("viewer", "oncall", "admin", "command")):
            start, end = (f"{FIRST + timedelta(hours=number + more):%Y-%m-%dT%H:%MZ}" for more in (0, 1))
            with psycopg.connect(POSTGRES) as connection:
                spoil = "UPDATE aggregates.flights SET flights = flights + 1 WHERE window_start = %s"
                assert connection.execute(spoil, [start]).rowcount, "no row"
            given = {"from": start, "to": end, "reason": "a test"}
            conf = {"pipeline": "flights", "force": True, **given}
            if user == "viewer":
                with pytest.raises(TerminalError, match=r"\(403\)"):
                    self.log_in(user).trigger("repair_on_call", conf)
                user = "oncall"
            if user == "command":
                options = (part for name, value in given.items() for part in (f"--{name}", value))
                self.deployment.onceover("repair", "flights", "--force", *options)
            else:
                self.repair(user, "repair_on_call", conf)
            self.require_right()

    def tomls(self) -> None:
        """A new TOML starts a process; a topic that is missing is reported once; a change counts after a restart."""
        second = self.deployment.clone / "pipelines" / "second.toml"
        flights_toml = (ROOT / "pipelines" / "flights.toml").read_text()
        second.write_text(flights_toml.replace('topic = "flights"', 'topic = "second"'))
        missing, ended = "second | ingest: Kafka at kafka:9092: cannot describe topic 'second'", "second | ingest ended"

        def log() -> str:
            return self.deployment.read_log("ingest")

        wait_until(lambda: log().count(ended) == 2, 120, log)
        assert log().count(missing) == 1
        second.write_text(flights_toml)
        self.deployment.compose("restart", "ingest")

        def has_all() -> bool:
            try:
                with psycopg.connect(POSTGRES) as connection:
                    row = connection.execute("SELECT sum(flights) FROM aggregates.second").fetchone()
                    return row is not None and row[0] == len(self.flights)
            except psycopg.errors.UndefinedTable:
                return False

        wait_until(has_all, 300, log)
        second.unlink()
        self.deployment.compose("restart", "ingest")

    def secrets(self) -> None:
        self.deployment.require_no_secret()

    def down(self) -> None:
        self.deployment.compose("down", "--volumes")
        assert self.deployment.list_containers() == []


@contextmanager
def deployed() -> Iterator[Deployment]:
    """A deployment that leaves no clone, container or volume behind; ONCEOVER_KEEP keeps them."""
    found = Deployment(Path(tempfile.mkdtemp(prefix="onceover-containers-")))
    try:
        found.make()
        yield found
    finally:
        if "ONCEOVER_KEEP" not in os.environ:
            found.compose("down", "--volumes")
            shutil.rmtree(found.clone)
            remove_substitutes()


def remove_substitutes() -> None:
    """Remove the images that images.sh made, and those that were built on them: no one else should take them for the
    published ones."""
    made = ("--filter", "label=onceover.substitute=yes")
    names = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", *made).split()
    if named := [name for name in names if "<none>" not in name]:
        run("docker", "image", "rm", *named)
    run("docker", "image", "prune", "--force", *made)


def main() -> None:
    print(run("docker", "version", "--format", "Docker {{.Server.Version}}"), run("docker", "compose", "version"))
    print(run("tests/compose/images.sh"), flush=True)
    with deployed() as deployment:
        os.environ["PGPASSWORD"] = deployment.secrets["ONCEOVER_PASSWORD"]
        scenario = Scenario(deployment)
        for step in STEPS:
            began = time.monotonic()
            print(f"{step}: ...", flush=True)
            getattr(scenario, step)()
            print(f"{step}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except OnceoverError as error:
        raise SystemExit(f"test-containers: {error}") from error
