"""Offset stores after crashes, restarts and foreign writes: read whole, or refused with the key."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import happybase
import pytest
from kazoo.client import KazooClient

from onceover.config.endpoints import address
from onceover.errors import BusyError, ConfigurationError, UnreachableError
from onceover.ledger.database import connect
from onceover.offset_stores import CorruptOffsetsError
from onceover.offset_stores.hbase import TABLE
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.raw.hdfs import SmallFiles
from onceover_local.stack import Stack

if TYPE_CHECKING:
    from tests.onceover.offset_stores.conftest import Place

pytestmark = [pytest.mark.stack, pytest.mark.rare]
Places = Callable[[str], "Place"]
SERVER = {"zookeeper": "zookeeper", "hbase": "hbase-thrift"}


def test_crash_between_write_and_rename_leaves_the_old_offsets(places: Places) -> None:
    file, hdfs, checkpoint = (places(kind) for kind in ("file", "hdfs", "checkpoint"))
    for place in (file, hdfs, checkpoint):
        place.open().save({0: 5, 1: 6}, "topic-a")
    Path(file.open().place).with_name(".gtoffset.new").write_text("0 7\n1")
    small = SmallFiles(address("webhdfs"))
    small._client.write(f"{hdfs.open().place}/.offsets-{1:020d}.json.0a.tmp", data=b'{"version": 1, "off')
    small._client.write(f"{checkpoint.open().place}/offsets/1", data=b"v1\n{}\n{")  # planned, never committed
    for place in (file, hdfs, checkpoint):
        assert dict(place.open().load([0, 1]).offsets) == {0: 5, 1: 6}
        place.open().save({0: 8, 1: 9}, "topic-a")
        assert dict(place.open().load([0, 1]).offsets) == {0: 8, 1: 9}
    for n in (2, 3):
        hdfs.open().save({0: n}, "topic-a")
    assert small.names(hdfs.open().place) == [f"offsets-{3:020d}.json"], "leftovers are swept"


def test_one_of_two_writers_at_once_is_refused(places: Places) -> None:
    for kind in ("hdfs", "checkpoint"):
        place = places(kind)
        one, other = place.open(), place.open()
        one.save({0: 5}, "topic-a")
        other.save({0: 6}, "topic-a")
        with pytest.raises(BusyError, match="at the same time"):
            one.save({0: 7}, "topic-a")
        assert dict(place.open().load([0]).offsets) == {0: 6}
        other.save({0: 6}, "topic-a")
        one.load([0])
        one.save({0: 7}, "topic-a")
        assert dict(place.open().load([0]).offsets) == {0: 7}


@pytest.mark.parametrize("content", [b"", b"0 5\n", b"0 5\n1 6\nend 2 00000000\n", b"\x00\xff\n"])
def test_foreign_local_file_is_named(places: Places, content: bytes) -> None:
    store = places("file").open()
    store.save({0: 5}, "topic-a")
    Path(store.place).write_bytes(content)
    with pytest.raises(CorruptOffsetsError, match="gtoffset is cut or was changed"):
        store.load([0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is cut or damaged"),
        (b'{"version": 1', "is cut or damaged"),
        (b'{"version": 2, "topic": "t", "topic_id": "x", "group": "g", "offsets": {}}', "is of version 2"),
        (b'{"version": 1, "topic": "t", "topic_id": "x", "group": "g", "offsets": {}}', "offsets of topic 't'"),
        (b'{"version": 1, "topic": "t", "topic_id": "x", "group": "g", "offsets": {"0": -1}}', "is not an offset"),
    ],
)
def test_foreign_hdfs_file_is_named(places: Places, content: bytes, message: str) -> None:
    store = places("hdfs").open()
    SmallFiles(address("webhdfs")).create(f"{store.place}/offsets-{0:020d}.json", content)
    with pytest.raises(CorruptOffsetsError, match=message):
        store.load([0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with ''"),
        (b"v2\n{}\n{}", "begins with 'v2'"),
        (b'v1\n{}\n{"other": {"0": 5}}', "is of topic 'other'"),
        (b'v1\n{}\n{"TOPIC": {"0": 5}}\n{"TOPIC": {"0": 5}}', "of a query with 2 sources"),
        (b"v1\n{}\n-", "its last line holds no offsets"),
        (b'v1\n{"batchWat\n{"TOPIC": {"0": 5}}', "its second line is not the metadata of a batch"),
        (b'v1\n{}\n{"TOPIC": {"0": 1.5}}', "which is not an offset"),
        (None, "is gone, but batch 1 was committed"),
    ],
)
def test_foreign_checkpoint_is_named(places: Places, content: bytes | None, message: str) -> None:
    place = places("checkpoint")
    store = place.open()
    small = SmallFiles(address("webhdfs"))
    store.save({0: 5}, "topic-a")
    if content is not None:
        small.create(f"{store.place}/offsets/1", content.replace(b"TOPIC", f"t-{place.name}".encode()))
    small.create(f"{store.place}/commits/1", b'v1\n{"nextBatchWatermarkMs":0}')
    with pytest.raises(CorruptOffsetsError, match=message):
        store.load([0])


def test_foreign_znodes_and_rows_are_named(places: Places) -> None:
    zookeeper, hbase = places("zookeeper").open(), places("hbase").open()
    zookeeper.save({0: 5}, "topic-a")
    hbase.save({0: 5}, "topic-a")
    client = KazooClient(address("zookeeper"))
    client.start()
    client.set(f"{zookeeper.place}/0", b"five")
    with pytest.raises(CorruptOffsetsError, match=f"{zookeeper.place}/0 in ZooKeeper holds 'five'"):
        zookeeper.load([0])
    client.create(f"{zookeeper.place}/lock", b"")
    with pytest.raises(CorruptOffsetsError, match=r"/lock in ZooKeeper is not a Kafka partition"):
        zookeeper.load([0])
    zookeeper.save({0: 6}, "topic-a")
    assert dict(zookeeper.load([0]).offsets) == {0: 6}, "an operator has set the offsets"
    client.stop()
    client.close()

    prefix = hbase.place.partition(" ")[2]
    host, port = address("hbase").split(":")
    table = happybase.Connection(host, int(port)).table(TABLE)
    now = time.time_ns() // 1_000_000
    table.put(f"{prefix}{now + 60_000:013d}".encode(), {b"offsets:0": b"5 "})
    with pytest.raises(CorruptOffsetsError, match="holds '5 ', which is not an offset"):
        hbase.load([0])
    table.put(f"{prefix}{now + 86_400_000:013d}".encode(), {b"offsets:0": b"5"})
    with pytest.raises(CorruptOffsetsError, match="is dated in the future"):
        hbase.load([0])
    hbase.save({0: 6}, "topic-a")
    with pytest.raises(CorruptOffsetsError, match="holds '5 '"):
        hbase.load([0])
    hbase.save({0: 6}, "topic-a")
    assert dict(hbase.load([0]).offsets) == {0: 6}
    assert table.families()[b"offsets"]["time_to_live"] == 30 * 24 * 3600


def test_checkpoint_of_a_query_with_state_is_left_alone(places: Places) -> None:
    place = places("checkpoint")
    files = SmallFiles(address("webhdfs"))
    files.create(f"{place.open().place}/state/0/0/1.delta", b"...")
    store = place.open()
    with pytest.raises(ConfigurationError, match="stateful query, which no other program can continue; name another"):
        store.load([0])
    assert files.names(f"{store.place}/offsets") == []


def test_newer_row_is_the_state_even_if_the_clock_went_back(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    place = places("hbase")
    store = place.open()
    store.save({0: 5}, "topic-a")
    monkeypatch.setattr("onceover.offset_stores.hbase._now", lambda: time.time_ns() // 1_000_000 - 60_000)
    again = place.open()
    assert dict(again.load([0]).offsets) == {0: 5}
    again.save({0: 6}, "topic-a")
    assert dict(place.open().load([0]).offsets) == {0: 6}


def test_expired_session_is_followed_by_another(places: Places) -> None:
    place = places("zookeeper")
    store = place.open()
    store.save({0: 5}, "topic-a")
    stolen = KazooClient(address("zookeeper"), client_id=store._client.client_id)  # type: ignore[attr-defined]
    stolen.start()
    stolen.stop()  # closes the session while the store uses it
    stolen.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(UnreachableError):  # raised at most until the client notices
            store.save({0: 6}, "topic-a")
            break
    assert dict(place.open().load([0]).offsets) == {0: 6}


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["zookeeper", "hbase"])  # Kafka's: test_kafka.py
def test_unreachable_server_fails_in_time_and_keeps_its_offsets(places: Places, servers: Stack, kind: str) -> None:
    if kind == "hbase":  # it does not outlive an HDFS that was away, as in tests before this one
        restart_hbase(servers)
    place = places(kind)
    store = place.open()
    store.save({0: 5}, "topic-a")
    servers.stop_part(SERVER[kind])
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match="did not write"):
        store.save({0: 6}, "topic-a")
    assert time.monotonic() - begun < 30
    if kind == "hbase":
        restart_hbase(servers)
    else:
        servers.start_part(SERVER[kind])
    assert dict(place.open().load([0]).offsets) in ({0: 5}, {0: 6})
    store.save({0: 7}, "topic-a")
    assert dict(place.open().load([0]).offsets) == {0: 7}


def restart_hbase(servers: Stack) -> None:
    for part in ("hbase-thrift", "hbase"):
        servers.stop_part(part)
    for part in ("hbase", "hbase-thrift"):
        servers.start_part(part)


@pytest.mark.faults
def test_hdfs_and_postgresql_keep_their_offsets_over_a_restart(places: Places, servers: Stack) -> None:
    hdfs, checkpoint, postgres = (places(kind) for kind in ("hdfs", "checkpoint", "postgres"))
    for place in (hdfs, checkpoint, postgres):
        place.open().save({0: 5}, "topic-a")
    for part in ("namenode", "postgres"):
        servers.stop_part(part)
    with pytest.raises(UnreachableError):
        hdfs.open().save({0: 6}, "topic-a")
    for part in ("namenode", "postgres"):
        servers.start_part(part)
    assert dict(hdfs.open().load([0]).offsets) == dict(checkpoint.open().load([0]).offsets) == {0: 5}
    with connect(address("postgres"), "test") as again:
        assert dict(LedgerOffsetStore(again, postgres.name).load([0]).offsets) == {0: 5}
