"""What a driver reads again of what landed: nothing, once another version of what evaluates has read the pipeline."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from bench.large_ledger import pipeline
from tests.onceover.ledger.driven_pipeline import SOURCE, drive, of, register

from onceover import __version__
from onceover.ingest.starts import ReadPositions
from onceover.kafka import TopicFacts
from onceover.ledger import batches, drivers, frontiers, log_cuts
from onceover.ledger.database import Connection
from onceover.ledger.drivers import UNKNOWN_VERSION
from onceover.model.batch import RangeRead
from onceover.model.digest import EMPTY
from onceover.model.offsets import OffsetRange

pytestmark = pytest.mark.stack
LANDED, FRESH = of(0, 10), of(12, 20)


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
    name = register(connection).name
    first = drive(connection, name)
    if earlier:
        with monkeypatch.context() as patched:
            patched.setattr(drivers, "__version__", earlier[0])
            drivers.record_versions(connection, first, *earlier[1:])
    batch_id = batches.begin(connection, first, 1, [LANDED])
    batches.land_batch(connection, first, batch_id, [RangeRead(LANDED, EMPTY, None, None)], [])
    drivers.end_epoch(connection, first)

    second = drivers.acquire(connection, name, "second")
    drivers.record_versions(connection, second, "4.1.0", "2025b")
    unused = cast("Any", None)
    positions = ReadPositions(connection, second, pipeline(name).ingest, unused, unused, unused)
    assert positions.list_landed([LANDED, FRESH]) == ((LANDED,) if skips else ())
    assert positions.leave_fresh([FRESH]) == ((FRESH,) if skips else ())


class ProbeOfCutLog:
    """A log of leader epoch 1 below 6, of 2 from there on."""

    def __init__(self, source: object, kafka_partition: int, end: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int]:
        return offset, 1 if offset < 6 else 2

    def close(self) -> None: ...


@pytest.mark.parametrize("sink", ["append", "transactional"])
def test_cut_log_is_read_from_its_cut_on(connection: Connection, monkeypatch: pytest.MonkeyPatch, sink: str) -> None:
    monkeypatch.setattr(log_cuts, "LogProbe", ProbeOfCutLog)
    name = register(connection).name
    epoch = drive(connection, name, end=10)

    def land(span: OffsetRange, leader_epoch: int) -> None:
        batch_id = batches.begin(connection, epoch, 1, [span])
        read = RangeRead(span, EMPTY, None, None, ((leader_epoch, span.start),))
        batches.land_batch(connection, epoch, batch_id, [read], [], positions.leave_fresh([span]))

    def find(stored: int, earliest: int = 0) -> int:
        offsets = SimpleNamespace(load=lambda *_: {0: stored}, begin=lambda *_: None)
        root = SimpleNamespace(record_origins=lambda origins: origins)
        policy = replace(pipeline(name).ingest, sink=sink)
        found = ReadPositions(connection, epoch, policy, cast("Any", offsets), cast("Any", root), cast("Any", str))
        return found.find(TopicFacts("topic", "id", SOURCE.generation, {0: earliest}, {0: 20}, {0: 2}))[0]

    policy = replace(pipeline(name).ingest, sink=sink)
    unused = cast("Any", None)
    positions = ReadPositions(connection, epoch, policy, unused, unused, unused)
    land(LANDED, 1)
    assert [find(10), find(10), find(20)] == [6, 6, 6]
    assert frontiers.read_progress(connection, name, SOURCE.generation) == {SOURCE: (6, 6)}
    assert (find(10, 7), find(10, 7)) == (7, 10), "what expired is a hole, and the store holds 7 by then"
    assert frontiers.read_holes(connection, name) == [of(6, 10)]
    land(of(7, 12), 2)
    assert find(12, 7) == 12
