"""Adoption into an expired window, which no repair can rebuild: its rows count each orphan once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from bench.large_ledger import pipeline

from onceover.ledger import batches, drivers, frontiers
from onceover.ledger.adoptions import Orphans, adopt
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.file_lengths import read_expected_count
from onceover.ledger.increments import increment, stage_name
from onceover.model.batch import Increment, Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = KafkaPartition("0a1b2c3d", 0)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
LANDED, LATE = Digest(2, 1, 2, 3, 4), Digest(2, 10, 20, 30, 40)
TOKEN = UUID(int=7)


@dataclass
class Expired:
    """An expired window of the records a and b; c and d, at the offsets 2 and 3, only its file holds."""

    connection: Connection
    known: RegisteredPipeline
    epoch: Epoch

    def begin(self, start: int, end: int) -> int:
        return batches.begin(self.connection, self.epoch, 1, [OffsetRange(SOURCE, start, end)])

    def stage(self, stage: str, kinds: str) -> int:
        rows = [f"{NOON.isoformat()}\t{kind}\t1" for kind in kinds]
        return self.known.table.stage(self.connection, stage, rows)

    def count(self, batch_id: int, kinds: str, digest: Digest) -> None:
        staged = self.stage(stage_name(batch_id), kinds)
        added = Increment(NOON, NOON + timedelta(hours=1), digest)
        increment(self.connection, self.epoch, self.known.table, batch_id, [added], staged)

    def adopt(self) -> bool:
        self.stage("orphans", "cd")
        row = self.connection.execute(
            'UPDATE onceover."window" SET token = %s WHERE pipeline = %s RETURNING version', [TOKEN, self.known.name]
        ).fetchone()
        version, ids = (row or {})["version"], [OffsetRange(SOURCE, 2, 4)]
        orphans = Orphans(NOON, None, ids, [LandingPart(SOURCE, LATE)], 300, TOKEN, version, "orphans")
        return bool(adopt(self.connection, self.known, [orphans], "me", "a test"))

    def rows(self) -> dict[str, int]:
        found = self.connection.execute(f"SELECT kind, events FROM aggregates.{self.known.name} ORDER BY kind")
        return {row["kind"]: row["events"] for row in found}


@pytest.fixture
def expired(connection: Connection) -> Expired:
    known = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS)
    epoch = drivers.acquire(connection, known.name, "test")
    frontiers.register_kafka_partitions(connection, epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
    made = Expired(connection, known, epoch)
    batch_id = made.begin(0, 2)
    made.count(batch_id, "ab", LANDED)
    read = RangeRead(OffsetRange(SOURCE, 0, 2), LANDED, NOON, NOON, ((0, 0),))
    landing = Landing(NOON, None, 0, 200, True, (LandingPart(SOURCE, LANDED),))
    batches.land_batch(connection, epoch, batch_id, [read], [landing])
    connection.execute('UPDATE onceover."window" SET expired_at = now() WHERE pipeline = %s', [known.name])
    return made


def test_orphans_are_added_to_the_rows_and_the_count(expired: Expired) -> None:
    assert expired.adopt()
    assert expired.rows() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert read_expected_count(expired.connection, expired.known.name, NOON) == (LANDED + LATE, LANDED + LATE)


def test_orphans_that_their_dead_batch_counted_count_once(expired: Expired) -> None:
    expired.count(expired.begin(2, 4), "cd", LATE)
    batches.supersede_own(expired.connection, expired.epoch)
    assert expired.adopt()
    assert expired.rows() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert read_expected_count(expired.connection, expired.known.name, NOON) == (LANDED + LATE, LANDED + LATE)


def test_orphans_wait_for_a_batch_that_may_land_them(expired: Expired) -> None:
    expired.begin(3, 9)
    assert not expired.adopt()
    assert expired.rows() == {"a": 1, "b": 1}
