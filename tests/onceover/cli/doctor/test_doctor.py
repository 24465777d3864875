from __future__ import annotations

import importlib.metadata
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onceover.cli import doctor as checks
from onceover.cli.commands.doctor import run_checks
from onceover.cli.doctor import Outcome, machine
from onceover.cli.doctor.airflow import _judge, _parse
from onceover.cli.doctor.clocks import compute_skew
from onceover.cli.doctor.datanodes import Writer, check_survival
from onceover.cli.doctor.kafka import check_settings
from onceover.config.pipelines import find
from onceover.errors import UnreachableError
from onceover.kafka.topic import TopicPolicy
from onceover_local.checks import ports


def fine() -> Iterator[Outcome]:
    yield Outcome("one", "fine", "well")


def test_hanging_check_is_named_in_time_and_keeps_its_output() -> None:
    never = threading.Event()

    def hangs() -> Iterator[Outcome]:
        yield Outcome("two", "note", "so far")
        never.wait()

    begun = time.monotonic()
    found = run_checks({"two": hangs, "one": fine}, 0.3)
    assert time.monotonic() - begun < 5
    assert [(each.check, each.state) for each in found] == [("two", "note"), ("two", "wrong"), ("one", "fine")]
    never.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UnreachableError("it is down; start it"), "it is down; start it"),
        (RuntimeError("unforeseen"), "the check itself crashed; report the traceback above"),
    ],
)
def test_failing_check_is_reported_and_delays_no_other(error: Exception, says: str) -> None:
    def fails() -> Iterator[Outcome]:
        yield Outcome("two", "fine", "so far")
        raise error

    assert run_checks({"two": fails, "one": fine}, 5) == [
        Outcome("two", "fine", "so far"),
        Outcome("two", "wrong", says),
        Outcome("one", "fine", "well"),
    ]


def test_imports_unsafe_for_threads_precede_the_threads(home: Path) -> None:
    program = """if True:
        import sys, threading
        from onceover.cli.app import app
        real = threading.Thread.start
        def start(thread):
            print([name for name in sys.argv[1:] if name not in sys.modules])
            real(thread)
        threading.Thread.start = start
        app(["doctor", "--json"])
    """
    needed = ("psycopg", "confluent_kafka", "requests", "psutil", "hdfs")
    done = subprocess.run([sys.executable, "-c", program, *needed], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[") and line.endswith("]")]
    assert len(lines) > 5
    assert set(lines) == {"[]"}


def test_doctor_without_any_address_fails_and_says_what_to_set(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "TOO_LITTLE", 0.0)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    wrong = {each["check"] for each in found if each["state"] == "wrong"}
    assert wrong == {"Kafka", "HDFS", "PostgreSQL", "Airflow"}
    assert all("set ONCEOVER_" in each["what"] for each in found if each["check"] in wrong)


def test_mistake_in_a_toml_is_wrong(run: Any, home: Path) -> None:
    (home / "pipelines" / "other.toml").write_text("x = 1\n")
    found = json.loads(run("doctor", "--json").stdout)
    assert any(each["check"] == "pipelines" and each["state"] == "wrong" for each in found)


@pytest.mark.parametrize(
    ("said", "state"), [("17.0.9", "fine"), ("21.0.1", "fine"), ("11.0.2", "wrong"), ("1.8.0_402", "wrong")]
)
def test_old_java_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, state: str) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{said}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [outcome.state for outcome in checks.check_java()] == [state]


def test_missing_java_and_a_wrong_java_home_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert [outcome.state for outcome in checks.check_java()] == ["wrong", "wrong"]


def test_packages_off_the_lock_are_notes_but_spark_must_match(tmp_path: Path) -> None:
    lock = tmp_path / "base.txt"
    here = {name: importlib.metadata.version(name) for name in ("pyspark", "pyspark-client", "typer")}

    def states(**other: str) -> list[str]:
        locked = here | {name.replace("_", "-"): version for name, version in other.items()}
        lock.write_text("".join(f"{name}=={version} \\\n    --hash=sha256:00\n" for name, version in locked.items()))
        return [outcome.state for outcome in checks.check_pins(lock)]

    assert states() == ["fine"]
    assert states(typer="0.0.1") == ["note"]
    assert states(pyspark_client="4.0.0", typer="0.0.1") == ["wrong", "note"]
    assert states(apache_airflow_providers_apache_spark="1.0") == ["wrong"]
    (wrong,) = checks.check_pins(lock)
    assert "apache-airflow-providers-apache-spark 6" in wrong.what
    assert "locked is 1.0" in wrong.what
    assert "make setup" in wrong.what


def test_installed_packages_match_the_lock() -> None:
    (found,) = checks.check_pins(Path(__file__).parents[4] / "requirements" / "base.txt")
    assert found.state == "fine", found.what


def test_disk_with_little_room_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TOO_LITTLE", 0.0)
    monkeypatch.setattr(machine, "LITTLE", 0.0)
    assert [outcome.state for outcome in checks.check_disk()] == ["fine"]
    monkeypatch.setattr(machine, "LITTLE", 1.1)
    assert [outcome.state for outcome in checks.check_disk()] == ["note"]
    monkeypatch.setattr(machine, "TOO_LITTLE", 1.1)
    (outcome,) = checks.check_disk()
    assert (outcome.state, "set ONCEOVER_LOCAL to another disk" in outcome.what) == ("wrong", True)


def test_foreign_process_on_a_kept_port_is_wrong_if_addressed(home: Path) -> None:
    local = home / ".local"
    local.mkdir()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        port = stranger.getsockname()[1]
        (local / "ports.json").write_text(json.dumps({"kafka": port}))
        assert list(ports()) == []  # no process answers there
        stranger.listen()
        assert [outcome.state for outcome in ports()] == ["note"]
        (local / "endpoints.json").write_text(json.dumps({"kafka": f"127.0.0.1:{port}"}))
        (wrong,) = ports()
        assert (wrong.state, f"port {port}, which the embedded stack keeps for kafka" in wrong.what) == ("wrong", True)


@pytest.mark.parametrize(
    ("theirs", "skew"), [(100.5, 0), (99.5, 0), (99.0, 0), (98.0, -1), (101.0, 0), (102.5, 1.5), (40.0, -59)]
)
def test_clock_skew_excludes_travel_time_and_resolution(theirs: float, skew: float) -> None:
    assert compute_skew(theirs, before=100.0, after=101.0) == skew


NEVER = TopicPolicy(retention_ms=None, compacted=False, stamped_on_arrival=False, unclean_election=False)
HOUR = 3_600_000
KEPT = "beyond 1,000 bytes (retention.bytes); how long records last is known"
PACE = "after 3 h, at their present pace, by retention.bytes=1000: once"


@pytest.mark.parametrize(
    ("policy", "noted_ms", "state", "says"),
    [
        ({}, None, "fine", "for ever"),
        ({"retention_ms": 7 * 24 * HOUR}, None, "fine", "for 7 d"),
        ({"retention_ms": 26 * HOUR}, None, "fine", "for 1 d 2 h"),
        ({"retention_ms": 26 * HOUR - 1}, None, "note", "retention.ms=93600000"),
        ({"retention_ms": 2 * HOUR}, None, "note", "0 s are left"),
        ({"retention_ms": 2 * HOUR - 1}, None, "wrong", "is judged 2 h after its start"),
        ({"compacted": True}, None, "note", "cleanup.policy=delete"),
        ({"stamped_on_arrival": True}, None, "note", "message.timestamp.type=CreateTime"),
        ({"unclean_election": True}, None, "wrong", "unclean.leader.election.enable=false"),
        ({"ahead_ms": HOUR + 1}, None, "note", "message.timestamp.after.max.ms=3600000"),
        ({"stamped_on_arrival": True, "ahead_ms": HOUR + 1}, None, "note", "message.timestamp.type=CreateTime"),
        ({"retention_bytes": 1000}, None, "note", KEPT),
        ({"retention_bytes": 1000}, HOUR, "wrong", "retention.bytes=26000`"),
        ({"retention_bytes": 1000}, 3 * HOUR, "note", PACE),
        ({"retention_bytes": 1000, "retention_ms": 40 * HOUR}, 30 * HOUR, "fine", "for about 1 d 6 h"),
        ({"retention_bytes": 1000, "retention_ms": HOUR}, HOUR, "wrong", "retention.ms=93600000`"),
        ({"unpacked_bytes": (32 << 20) + 1}, None, "note", "max.decompressed.message.bytes=33554432`"),
        ({"unpacked_bytes": 32 << 20}, None, "fine", "for ever"),
    ],
)
def test_topic_is_judged_by_its_pipelines_needs(
    home: Path, monkeypatch: pytest.MonkeyPatch, policy: dict[str, Any], noted_ms: int | None, state: str, says: str
) -> None:
    # `things` has windows of an hour and an allowed lateness of an hour. Nothing listens at Kafka's address.
    monkeypatch.setenv("ONCEOVER_KAFKA", "broker.example:9092")
    (found,) = check_settings("topic", find("things", home), replace(NEVER, **policy), noted_ms)
    assert (found.state, says in found.what) == (state, True), found.what
    assert found.what.count("--bootstrap-server broker.example:9092 ") == found.what.count("kafka-configs.sh")


def writer(replication: int, policy: str = "DEFAULT", *, replaces: bool = True, best_effort: bool = False) -> Writer:
    return Writer(replication, replaces, policy, best_effort)


@pytest.mark.parametrize(
    ("writes", "living", "states"),
    [
        (writer(1), 1, ["fine"]),
        (writer(2), 2, ["fine"]),
        (writer(3), 4, ["fine"]),
        (writer(3, "NEVER"), 3, ["fine"]),
        (writer(3, best_effort=True), 3, ["fine"]),
        (writer(3, replaces=False), 3, ["fine"]),
        (writer(3), 3, ["wrong"]),
        (writer(2, "ALWAYS"), 2, ["wrong"]),
        (writer(2, "NEVER"), 1, ["wrong"]),
        (writer(3), 1, ["wrong", "wrong"]),
    ],
)
def test_hdfs_client_must_survive_a_datanode_loss(writes: Writer, living: int, states: list[str]) -> None:
    assert [outcome.state for outcome in check_survival(writes, living)] == states


@pytest.mark.parametrize(
    ("stated", "state", "says"),
    [
        ('{"conn_type": "spark", "host": "local[2]"}', "fine", "is local[2]"),
        ('{"conn_type": "spark", "host": "spark://master", "port": 7077}', "fine", "is spark://master:7077"),
        ("spark://master:7077", "fine", "is spark://master:7077"),
        ('{"conn_type": "spark", "host": "yarn"}', "fine", "is yarn"),
        ('{"conn_type": "spark", "host": "k8s://https://cluster:6443"}', "fine", "is k8s://https://cluster:6443"),
        ('{"conn_type": "spark"}', "wrong", "--master 'spark://'"),
        ('{"conn_type": "http", "host": "master"}', "wrong", "--master 'http://master'"),
        ("spark://k8s%3A%2F%2Fhttps%3A%2F%2Fcluster:6443?namespace=x", "fine", "is k8s://https://cluster:6443"),
        ("spark://user:secret@[", "wrong", "--master '://', which is not a master"),
        ('{"password": "secret", ', "wrong", "--master '://', which is not a master"),
    ],
)
def test_connection_gives_the_master_that_spark_submit_derives(stated: str, state: str, says: str) -> None:
    found = _judge("spark_default", "here", _parse(stated))
    assert (found.state, says in found.what) == (state, True), found.what


def test_spark_masters_are_wrong_if_none_accepts_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as leading, socket.create_server(("127.0.0.1", 0)) as gone:
        up, down = (f"127.0.0.1:{each.getsockname()[1]}" for each in (leading, gone))
        gone.close()

        def looked_at(master: str) -> list[tuple[str, bool]]:
            monkeypatch.setenv("ONCEOVER_SPARK", master)
            return [(each.state, "no answer" in each.what) for each in checks.check_spark()]

        assert looked_at(f"spark://{up}") == [("fine", False)]
        assert looked_at(f"spark://{down}") == looked_at("spark://[") == [("wrong", True)]
        assert looked_at(f"spark://{up},{down}") == [("fine", False), ("note", True)]
        assert looked_at("yarn") == [("note", False)]
        assert looked_at("local[2]") == []
