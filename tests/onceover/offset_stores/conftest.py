"""Fixtures of every offset store on its real server, at a place of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from onceover.config.endpoints import address
from onceover.ledger.database import Connection, connect
from onceover.model.pipeline import OFFSET_STORES
from onceover.offset_stores import OffsetStore
from onceover.offset_stores.checkpoint import CheckpointOffsetStore
from onceover.offset_stores.file import LocalFileOffsetStore
from onceover.offset_stores.hbase import HBaseOffsetStore
from onceover.offset_stores.hdfs import HdfsOffsetStore
from onceover.offset_stores.kafka import KafkaOffsetStore
from onceover.offset_stores.postgres import LedgerOffsetStore
from onceover.offset_stores.zookeeper import ZooKeeperOffsetStore
from onceover_local.stack import Stack

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

KINDS = sorted(set(OFFSET_STORES) - {"none"})


@dataclass(slots=True)
class Place:
    """The place of one store's values. Each `open` acts as another process: only the place is shared."""

    kind: str
    name: str
    folder: Path
    ledger: Connection
    opened: list[OffsetStore] = field(default_factory=list)

    def open(self) -> OffsetStore:
        store = self._make()
        self.opened.append(store)
        return store

    def _make(self) -> OffsetStore:
        group, topic = f"g-{self.name}", f"t-{self.name}"
        make: dict[str, Callable[[], OffsetStore]] = {
            "file": lambda: LocalFileOffsetStore(self.folder, group, topic),
            "kafka": lambda: KafkaOffsetStore(address("kafka"), topic, group, {}),
            "zookeeper": lambda: ZooKeeperOffsetStore(address("zookeeper"), group, topic, timeout=8),
            "hbase": lambda: HBaseOffsetStore(address("hbase"), group, topic),
            "hdfs": lambda: HdfsOffsetStore(address("webhdfs"), f"/offsets/{self.name}", group, topic),
            "checkpoint": lambda: CheckpointOffsetStore(address("webhdfs"), f"/checkpoints/{self.name}", topic),
            "postgres": lambda: LedgerOffsetStore(self.ledger, self.name),
        }
        return make[self.kind]()


@pytest.fixture(scope="session")
def servers(stack: Stack) -> Stack:
    """Return the session's stack, with the servers that start only by name."""
    stack.up(["zookeeper", "hbase"])
    return stack


@pytest.fixture
def places(servers: Stack, connection: Connection, broker: Broker, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    made: list[Place] = []

    def make(kind: str) -> Place:
        place = Place(kind, uuid.uuid4().hex[:8], tmp_path, connection)
        connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1)", [place.name])
        if kind == "kafka":
            broker.create(4, name=f"t-{place.name}")
        made.append(place)
        return place

    yield make
    for each in made:
        for store in each.opened:
            store.close()
    with connect(address("postgres"), "test") as again:  # a test may have restarted PostgreSQL
        for each in made:
            for table, column in (("stored_offset", "pipeline"), ("offset_place", "pipeline"), ("pipeline", "name")):
                again.execute(f"DELETE FROM onceover.{table} WHERE {column} = %s", [each.name])
