"""Holes by the ten thousand on the real stack: judged and requested within seconds, and filled by few batches."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Producer
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import delete_window, expire, list_gaps, lose_ledger, read_end, skip_to
from tests.integration.test_holes import list_batches
from tests.integration.test_ledger_rebuild import certify

from onceover.config.endpoints import address
from onceover.ingest import batch_query
from onceover.kafka.reader import LogReader
from onceover.ledger import read_again
from onceover.model.batch_plan import MAX_READ_AGAIN
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.largest]
TRANSACTIONS, PRODUCERS = 10_000, 8


def produce_transactions(lane: Lane) -> None:
    """Produce transactions of two records by several producers at once."""

    def produce(number: int) -> None:
        producer = Producer({"bootstrap.servers": address("kafka"), "transactional.id": f"{lane.name}-{number}"})
        producer.init_transactions(30)
        for _ in range(TRANSACTIONS // PRODUCERS):
            producer.begin_transaction()
            for minute in (number, 5 + number):
                producer.produce(lane.topic, event(minute), partition=0)
            producer.commit_transaction(30)

    with ThreadPoolExecutor(PRODUCERS) as pool:
        list(pool.map(produce, range(PRODUCERS)))


def list_read(lane: Lane) -> list[int]:
    """Return the offset of each line in raw."""
    return sorted(line.record.offset for _, line in lane.lines())


def test_hole_over_ten_thousand_transactions_takes_seconds(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    lane.produce([event(0)])
    lane.turn()
    produce_transactions(lane)
    end = 1 + 3 * TRANSACTIONS
    wait_for(lambda: read_end(lane) == end, 30, "the last markers")
    skip_to(lane, end)
    lane.turn()
    began = time.monotonic()
    detection = lane.detect()
    assert time.monotonic() - began < 15
    (finding,) = detection.findings
    gaps = cast("list[dict[str, Any]]", finding.evidence["gaps"])
    assert {gap["reason"] for gap in gaps} == {"lost"}
    assert len(gaps) == 1, "markers do not divide it"
    assert [one.rpartition(":")[2] for one in detection.read_again] == [f"1-{end}"]
    lane.repair(detection.request_id)
    before, aggregates = certify(lane), lane.aggregates()
    assert (list_gaps(lane), lane.detect().findings) == ([], ())
    assert sum(cast(int, row[0]) for row in aggregates.values()) == 1 + 2 * TRANSACTIONS

    lose_ledger()
    connected, connect = Counter[str](), LogReader._connect

    def count(log: LogReader) -> Consumer:
        connected[log.source.isolation] += 1
        return connect(log)

    with monkeypatch.context() as patch:
        patch.setattr(LogReader, "_connect", count)
        began = time.monotonic()
        assert lane.rebuild().written.holes == ()
        assert time.monotonic() - began < 60
    assert connected == {"read_committed": 2}, "one for the holes, one for the probe, none for a marker"
    lane.turn()
    began = time.monotonic()
    lane.repair_detected()
    assert time.monotonic() - began < 60
    assert certify(lane) == before
    assert lane.aggregates() == aggregates


def test_hundreds_of_small_holes_are_filled_by_few_batches(lanes: Lanes) -> None:
    lane, many = lanes(), MAX_READ_AGAIN + 100
    lane.produce([event(minute) for _ in range(many) for minute in (0, 5)])
    before, aggregates = certify(lane), lane.aggregates()
    delete_window(lane, 0)
    lose_ledger()
    assert len(lane.rebuild().written.holes) == many
    known = len(list_batches(lane))
    lane.turn()
    detection = lane.detect()
    assert len(detection.read_again) == many
    lane.repair(detection.request_id)
    assert list_gaps(lane) == []
    assert list_batches(lane)[known:] == [(True, MAX_READ_AGAIN), (True, 100)]
    assert list_read(lane) == list(range(2 * many)), "what lies between the holes was not read again"
    assert certify(lane) == before
    assert lane.aggregates() == aggregates


def test_hole_too_large_for_a_batch_lands_in_parts(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_query, "MAX_WINDOWS", 2)
    lane = lanes()
    lane.produce([event(0)])
    lane.turn()
    lane.produce([event(5 * n, amount=n) for n in range(1, 10)])
    skip_to(lane, 10)
    with lane.driver() as driver:
        driver.turn()
        request = lane.detect().request_id or 0
        for _ in range(12):
            driver.turn()
    with lane.ledger() as ledger:
        assert read_again.list_wanted(ledger, lane.name) == ()
    assert list_read(lane) == list(range(10)), "what landed of a hole is not read again"
    lane.repair(request)
    lane.ingest()
    lane.detect()
    assert lane.aggregates() == {(0.0, "a"): (1, 1, 1)} | {(5.0 * n, "a"): (1, n, n) for n in range(1, 10)}


def test_hole_whose_head_expires_reads_the_rest(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(5)])
    lane.turn()
    lane.produce([event(n) for n in range(5, 20)])
    skip_to(lane, 15)
    with lane.driver() as driver:
        driver.turn()
        assert [one.rpartition(":")[2] for one in lane.detect().read_again] == ["5-15"]
        expire(lane, 10)
        assert [driver.turn().records for _ in range(2)] == [5, 0]
    assert list_gaps(lane) == [(5, 10, "expired")]
    with lane.ledger() as ledger:
        assert read_again.list_wanted(ledger, lane.name) == ()
