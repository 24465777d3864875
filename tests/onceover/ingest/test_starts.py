"""What a driver reads again of what landed: nothing, once another version of what evaluates has read the pipeline."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
from bench.large_ledger import pipeline

from onceover import __version__
from onceover.ingest.starts import ReadPositions
from onceover.ledger import batches, drivers, frontiers
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import UNKNOWN_VERSION
from onceover.model.batch import RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import EMPTY
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
SOURCE = KafkaPartition("0a1b2c3d", 0)
LANDED, FRESH = OffsetRange(SOURCE, 0, 10), OffsetRange(SOURCE, 12, 20)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


@pytest.mark.parametrize(
    ("earlier", "skips"),
    [
        (("0.0.1", "4.1.0", "2025b"), True),
        ((__version__, "4.0.0", "2025b"), True),
        ((__version__, "4.1.0", "2025a"), True),
        ((__version__, UNKNOWN_VERSION, UNKNOWN_VERSION), True),
        ((__version__, "4.1.0", "2025b"), False),
        (None, False),
    ],
    ids=["code", "Spark", "zones", "rebuilt", "same", "evaluated none"],
)
def test_other_versions_records_are_not_read_again(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, earlier: tuple[str, str, str] | None, *, skips: bool
) -> None:
    name = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS).name
    first = drivers.acquire(connection, name, "first")
    if earlier:
        with monkeypatch.context() as patched:
            patched.setattr(drivers, "__version__", earlier[0])
            drivers.record_versions(connection, first, *earlier[1:])
    frontiers.register_kafka_partitions(connection, first, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
    batch_id = batches.begin(connection, first, 1, [LANDED])
    batches.land_batch(connection, first, batch_id, [RangeRead(LANDED, EMPTY, None, None)], [])
    drivers.end_epoch(connection, first)

    second = drivers.acquire(connection, name, "second")
    drivers.record_versions(connection, second, "4.1.0", "2025b")
    unused = cast("Any", None)
    positions = ReadPositions(connection, second, pipeline(name).ingest, unused, unused, unused)
    assert positions.list_landed([LANDED, FRESH]) == ((LANDED,) if skips else ())
    assert positions.leave_fresh([FRESH]) == ((FRESH,) if skips else ())
