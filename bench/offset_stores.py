"""Saving and loading the offsets of 64 Kafka partitions: each store beside the calls of its own client.

Ours and the peer's go to different places of the same server, in turn, one call each. The peer does what the store
promises with nothing around it: the same bytes, the same durability, no check of what it reads.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import happybase
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kazoo.client import KazooClient

from bench.table import Row
from onceover.config.endpoints import address, local_folder
from onceover.ledger import batches, drivers, frontiers
from onceover.ledger.database import Connection, connect
from onceover.model.batch import RangeRead
from onceover.model.batch_plan import Start
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.offset_stores import OffsetStore
from onceover.offset_stores.checkpoint import CheckpointOffsetStore
from onceover.offset_stores.file import LocalFileOffsetStore
from onceover.offset_stores.hbase import TABLE, HBaseOffsetStore
from onceover.offset_stores.hdfs import HdfsOffsetStore
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.offset_stores.zookeeper import ZooKeeperOffsetStore
from onceover.raw.hdfs import connect_hdfs
from onceover_local.stack import Stack

PARTITIONS = range(64)
GOAL = 1.2
Call = Callable[[Mapping[int, int]], object]


@dataclass(frozen=True, slots=True)
class Pair:
    """A store of ours, and the same by its client alone."""

    name: str
    ours: OffsetStore
    save: Call
    load: Callable[[], Mapping[int, int]]
    called: str


def run() -> tuple[list[Row], list[str]]:
    """Rows for `bench.table.show`, and what is worth saying beside them."""
    Stack(local_folder()).up(["zookeeper", "hbase"])
    times = 30 if os.environ.get("BENCH") == "quick" else 300
    rows: list[Row] = []
    notes = [f"each call {times} times, ours and the peer's in turn"]
    with connect(address("postgres"), "onceover bench") as connection, _pairs(connection) as pairs:
        for pair in pairs:
            rows += _compare(pair, times)
            notes.append(f"{pair.name}: {_empty_batches(connection, pair, times // 10):.1f} empty batches/s")
    return rows, notes


def _empty_batches(connection: Connection, pair: Pair, times: int) -> float:
    """Batches a second that read 64 offsets which hold nothing: every step of the ledger, and the offsets kept."""
    name = f"bench_{uuid.uuid4().hex[:8]}"
    connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1)", [name])
    epoch = drivers.acquire(connection, name, "bench")
    sources = [KafkaPartition("0badcafe", p) for p in PARTITIONS]
    ends = dict.fromkeys(sources, times)
    frontiers.register_kafka_partitions(connection, epoch, "bench", dict.fromkeys(sources, Start(0, 0)), ends)
    started = time.perf_counter()
    for n in range(times):
        ranges = [OffsetRange(source, n, n + 1) for source in sources]
        batch_id = batches.begin(connection, epoch, 1, ranges)
        batches.land_batch(connection, epoch, batch_id, [RangeRead(r, Digest(), None) for r in ranges], ())
        pair.ours.save(dict.fromkeys(PARTITIONS, n + 1), "bench")
        batches.mark_committed(connection, epoch, batch_id)
    took = time.perf_counter() - started
    drivers.end_epoch(connection, epoch)
    return times / took


def _compare(pair: Pair, times: int) -> Iterator[Row]:
    took: dict[str, list[float]] = {what: [] for what in ("save", "peer save", "load", "peer load")}
    correct = True
    for n in range(times + 5):
        offsets = dict.fromkeys(PARTITIONS, 1_000_000 + n)
        took["save"].append(_timed(lambda o=offsets: pair.ours.save(o, "bench"))[0])  # type: ignore[misc]
        took["peer save"].append(_timed(lambda o=offsets: pair.save(o))[0])  # type: ignore[misc]
        seconds, found = _timed(lambda: pair.ours.load(PARTITIONS))
        took["load"].append(seconds)
        seconds, peers = _timed(pair.load)
        took["peer load"].append(seconds)
        correct = correct and dict(found.offsets) == offsets == dict(peers)
    warm = {what: sorted(seconds[5:]) for what, seconds in took.items()}
    for what in ("save", "load"):
        for name, at in (("p50", statistics.median), ("p99", _p99)):
            ours, peer = at(warm[what]), at(warm[f"peer {what}"])
            yield Row(f"{pair.name}, {what}, {name}", ours * 1000, peer * 1000, pair.called, "ms", ours / peer,
                      f"<= {GOAL}", ours / peer <= GOAL, correct, times)  # fmt: skip


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def _p99(ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


@contextmanager
def _pairs(connection: Connection) -> Iterator[list[Pair]]:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    made = [
        _file(name), _kafka(name), _zookeeper(name), _hbase(name), _hdfs(name), _checkpoint(name),
        _postgres(connection, name),
    ]  # fmt: skip
    yield made
    for pair in made:
        pair.ours.close()


def _text(offsets: Mapping[int, int]) -> bytes:
    return json.dumps({str(p): offset for p, offset in offsets.items()}).encode()


def _of(content: bytes) -> dict[int, int]:
    return {int(p): offset for p, offset in json.loads(content).items()}


def _file(name: str) -> Pair:
    folder = local_folder() / "bench-offsets"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "peer"

    def save(offsets: Mapping[int, int]) -> None:
        scratch = Path(f"{file}.new")
        with scratch.open("wb") as opened:
            opened.write(_text(offsets))
            opened.flush()
            os.fsync(opened.fileno())
        scratch.replace(file)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    ours = LocalFileOffsetStore(folder, name, "ours")
    return Pair("file", ours, save, lambda: _of(file.read_bytes()), "write, fsync, rename, fsync; read")


def _kafka(name: str) -> Pair:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.create_topics([NewTopic(name, len(PARTITIONS), 1)])[name].result(30)
    sources = [TopicPartition(name, p) for p in PARTITIONS]
    client = Consumer({"bootstrap.servers": address("kafka"), "group.id": f"{name}-peer", "enable.auto.commit": False})

    def save(offsets: Mapping[int, int]) -> None:
        client.commit(offsets=[TopicPartition(name, p, o) for p, o in offsets.items()], asynchronous=False)

    def load() -> dict[int, int]:
        return {p.partition: p.offset for p in client.committed(sources, timeout=10)}

    return Pair(
        "kafka", KafkaOffsetStore(address("kafka"), name, name, {}), save, load, "Consumer.commit and committed"
    )


def _zookeeper(name: str) -> Pair:
    client = KazooClient(address("zookeeper"))
    client.start()
    folder = f"/bench/{name}"
    for p in PARTITIONS:
        client.create(f"{folder}/{p}", b"0", makepath=True)

    def save(offsets: Mapping[int, int]) -> None:
        change = client.transaction()
        for p, offset in offsets.items():
            change.set_data(f"{folder}/{p}", str(offset).encode())
        change.commit()

    def load() -> dict[int, int]:
        reads = {child: client.get_async(f"{folder}/{child}") for child in client.get_children(folder)}
        return {int(child): int(read.get()[0]) for child, read in reads.items()}

    ours = ZooKeeperOffsetStore(address("zookeeper"), name, "ours")
    return Pair("zookeeper", ours, save, load, "kazoo's transaction; get_children and get_async")


def _hbase(name: str) -> Pair:
    ours = HBaseOffsetStore(address("hbase"), name, "ours")
    ours.load(PARTITIONS)  # makes the table
    host, port = address("hbase").split(":")
    table = happybase.Connection(host, int(port)).table(TABLE)
    prefix = f"{name}:peer:"

    def save(offsets: Mapping[int, int]) -> None:
        key = f"{prefix}{time.time_ns() // 1_000_000}".encode()
        table.put(key, {f"offsets:{p}".encode(): str(o).encode() for p, o in offsets.items()})

    def load() -> dict[int, int]:
        ((_, columns),) = table.scan(row_prefix=prefix.encode(), reverse=True, limit=1)
        return {int(column.partition(b":")[2]): int(value) for column, value in columns.items()}

    return Pair("hbase", ours, save, load, "happybase's put; a reverse scan of one row")


def _hdfs(name: str) -> Pair:
    client, folder, number = connect_hdfs(address("webhdfs")), f"/bench/{name}", 0
    ours = HdfsOffsetStore(address("webhdfs"), f"/bench/{name}-ours", name, "ours")

    def save(offsets: Mapping[int, int]) -> None:
        nonlocal number
        client.write(f"{folder}/.{number + 1}.tmp", data=_text(offsets))
        client.rename(f"{folder}/.{number + 1}.tmp", f"{folder}/{number + 1}")
        client.delete(f"{folder}/{number}")
        number += 1

    def load() -> dict[int, int]:
        newest = max(map(int, client.list(folder)))
        with client.read(f"{folder}/{newest}") as reader:
            return _of(reader.read())

    return Pair("hdfs", ours, save, load, "WebHDFS: write, rename, delete the one before; list, read")


def _checkpoint(name: str) -> Pair:
    client, folder, number = connect_hdfs(address("webhdfs")), f"/bench/{name}-log", 0
    ours = CheckpointOffsetStore(address("webhdfs"), f"/bench/{name}-checkpoint", name)

    def save(offsets: Mapping[int, int]) -> None:
        nonlocal number
        for log, content in (("offsets", _text(offsets)), ("commits", b"done")):
            client.write(f"{folder}/{log}/.{number}.tmp", data=content)
            client.rename(f"{folder}/{log}/.{number}.tmp", f"{folder}/{log}/{number}")
            if number >= 100:
                client.delete(f"{folder}/{log}/{number - 100}")
        number += 1

    def load() -> dict[int, int]:
        newest = max(map(int, client.list(f"{folder}/commits")))
        with client.read(f"{folder}/offsets/{newest}") as reader:
            return _of(reader.read())

    return Pair("checkpoint", ours, save, load, "WebHDFS: write and rename twice; list, read")


def _postgres(connection: Connection, name: str) -> Pair:
    connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1)", [name])
    connection.execute(
        "CREATE TABLE IF NOT EXISTS bench_offsets "
        "(name text, p integer, o bigint NOT NULL, topic_id text NOT NULL, PRIMARY KEY (name, p))"
    )

    def save(offsets: Mapping[int, int]) -> None:
        connection.execute(
            "INSERT INTO bench_offsets SELECT %s, p, o, %s FROM unnest(%s::integer[], %s::bigint[]) AS given (p, o) "
            "ON CONFLICT (name, p) DO UPDATE SET o = excluded.o, topic_id = excluded.topic_id",
            [name, "bench", list(offsets), list(offsets.values())],
        )

    mine = "SELECT p, o, topic_id FROM bench_offsets WHERE name = %s"

    def load() -> dict[int, int]:
        return {row["p"]: row["o"] for row in connection.execute(mine, [name])}

    return Pair("postgres", LedgerOffsetStore(connection, name), save, load, "psycopg: one upsert; one select")
