"""A stack of its own, in a folder that is hard to live in, through everything that can happen to one."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hdfs import InsecureClient
from tests.frozen import frozen
from tests.listening import LOOPBACKS, list_heard

from onceover.errors import TransientError, UsageError
from onceover_local.stack import Stack
from onceover_local.stack.ports import LOOPBACK

pytestmark = [pytest.mark.stack, pytest.mark.rare]

PARTS = {"kafka", "hdfs", "postgres"}
NAMES = ["kafka", "namenode", "datanode1", "postgres"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Killed twice on its first way up, once while it makes data folders and once while parts are starting."""
    deep = tmp_path_factory.mktemp("deep") / ("far_" + "down" * 20) / ("and_" + "further" * 12) / ".local"
    found = Stack(deep)
    try:
        kill_while_it_says(deep, "formats its folder of names")
        kill_while_it_says(deep, "starts")
        found.up(PARTS)
        yield found
    finally:
        found.down()


def kill_while_it_says(local: Path, what: str) -> None:
    program = (
        "import sys; from pathlib import Path; from onceover_local.stack import Stack; "
        f"Stack(Path(sys.argv[1])).up({PARTS!r}, lambda part, what: print(part, what, flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(local)], stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout is not None
        heard = next((line for line in starting.stdout if what in line), None)
        starting.send_signal(signal.SIGKILL)
    assert heard is not None
    assert starting.returncode == -signal.SIGKILL


def running_in(local: Path) -> list[psutil.Process]:
    """The servers that run there, recorded or not; PostgreSQL's own children aside."""
    elsewhere = [link.resolve() for link in local.glob("*") if link.is_symlink()]
    found = []
    for each in psutil.process_iter():
        try:
            line = " ".join(each.cmdline())
        except psutil.Error:
            continue
        server = any(word in line for word in ("kafka.Kafka", "namenode.NameNode", "datanode.DataNode", "postgres -D"))
        if server and any(str(folder) in line for folder in (local, *elsewhere)):
            found.append(each)
    return found


def addresses(stack: Stack) -> dict[str, str]:
    found: dict[str, str] = json.loads((stack.local / "endpoints.json").read_text())
    return found


@pytest.mark.largest
def test_stack_killed_twice_on_start_has_each_server_once(own: Stack) -> None:
    assert [part.name for part in own.list_statuses() if part.state == "up"] == NAMES
    assert sorted(each.pid for each in running_in(own.local)) == sorted(own.find_pid(name) for name in NAMES)
    assert set(addresses(own)) == {"kafka", "webhdfs", "hdfs", "postgres"}


def test_second_up_starts_nothing(own: Stack) -> None:
    before = [own.find_pid(name) for name in NAMES]
    said: list[tuple[str, str]] = []
    assert Stack(own.local).up(PARTS, lambda part, what: said.append((part, what))) == []
    assert [own.find_pid(name) for name in NAMES] == before
    assert sorted(said) == sorted((name, "is up already") for name in NAMES)


def test_servers_listen_on_loopback_only(own: Stack) -> None:
    heard = list_heard(own.find_pid(name) for name in NAMES)
    assert len(heard) >= 8
    assert set(heard) <= LOOPBACKS


def test_passwords_are_in_no_command_line_and_no_address(own: Stack) -> None:
    secrets = [file.read_text() for file in (own.local / "secrets").iterdir() if file.name != "pgpass"]
    assert secrets
    lines = [" ".join(each.cmdline()) for each in running_in(own.local)] + [json.dumps(addresses(own))]
    assert not [secret for secret in secrets for line in lines if secret in line]
    assert all(file.stat().st_mode & 0o077 == 0 for file in (own.local / "secrets").iterdir())


def test_database_requires_a_password(own: Stack) -> None:
    uri = addresses(own)["postgres"].partition("?")[0]
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(uri, passfile="/dev/null")


def test_data_outlives_a_stop_and_a_taken_port(own: Stack) -> None:
    before = addresses(own)
    write_everywhere(before)
    assert sorted(own.down()) == sorted(NAMES)
    assert running_in(own.local) == []
    assert not (own.local / "endpoints.json").exists()
    assert {part.state for part in own.list_statuses()} == {"down"}

    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind((LOOPBACK, int(before["kafka"].rpartition(":")[2])))
        stranger.listen()
        own.up(PARTS)
        after = addresses(own)
    assert after["kafka"] != before["kafka"]
    assert {name: after[name] for name in ("webhdfs", "postgres")} == {
        name: before[name] for name in ("webhdfs", "postgres")
    }
    assert_it_is_all_there(after)


def write_everywhere(at: dict[str, str]) -> None:
    with psycopg.connect(at["postgres"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
    InsecureClient(at["webhdfs"], user="root").write("/kept", b"first\n")
    InsecureClient(at["webhdfs"], user="root").write("/kept", b"second\n", append=True)
    admin = AdminClient({"bootstrap.servers": at["kafka"]})
    admin.create_topics([NewTopic("kept", 4)])["kept"].result()


def assert_it_is_all_there(at: dict[str, str]) -> None:
    with psycopg.connect(at["postgres"]) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (42,)
    with InsecureClient(at["webhdfs"], user="test").read("/kept") as reader:
        assert reader.read() == b"first\nsecond\n"
    assert (
        len(AdminClient({"bootstrap.servers": at["kafka"]}).list_topics("kept", timeout=10).topics["kept"].partitions)
        == 4
    )


def test_killed_server_shows_as_dead_and_restarts_alone(own: Stack) -> None:
    others = {name: own.find_pid(name) for name in NAMES if name != "postgres"}
    own.kill_part("postgres")
    assert {part.name: part.state for part in own.list_statuses()}["postgres"] == "dead"
    with pytest.raises(TransientError, match="postgres is not running"):
        own.find_pid("postgres")
    assert own.up(PARTS) == ["postgres"]
    assert {name: own.find_pid(name) for name in others} == others


def test_server_is_stopped_and_started_alone_at_its_address(own: Stack) -> None:
    before = addresses(own)
    assert own.stop_part("kafka")
    assert addresses(own) == before
    assert own.start_part("kafka")
    assert not own.start_part("kafka")
    assert addresses(own) == before


def test_paused_server_is_unready_not_up(own: Stack) -> None:
    with frozen(own.find_pid("namenode")):
        assert {part.name: part.state for part in own.list_statuses()}["namenode"] == "unready"


def test_one_part_is_stopped_and_the_others_run_on(own: Stack) -> None:
    before = addresses(own)
    assert own.down(groups=["hdfs"]) == ["datanode1", "namenode"]
    assert {part.name: part.state for part in own.list_statuses() if part.group in PARTS} == {
        "kafka": "up", "namenode": "down", "datanode1": "down", "postgres": "up"
    }  # fmt: skip
    assert addresses(own) == before
    assert own.up(PARTS) == ["namenode", "datanode1"]


def test_unknown_servers_are_named_and_an_empty_list_is_none(own: Stack) -> None:
    known = "kafka, hdfs, postgres, airflow, zookeeper, hbase, registry, yarn"
    with pytest.raises(UsageError, match=f"the stack has no part etcd; its parts are {known}"):
        own.up({"kafka", "etcd"})
    with pytest.raises(UsageError, match="the stack has no part etcd; its parts are kafka"):
        own.down(groups=["kafka", "etcd"])
    with pytest.raises(UsageError, match="no part kafka2"):
        own.stop_part("kafka2")
    assert own.up(set()) == []
