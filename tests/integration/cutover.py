"""A changed contract and its cutover, and the resulting aggregates, computed without SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.integration.events import NOON_MS, Rows, event
from tests.integration.lane import Lane

from onceover.ingest.cutover import Migration

MINUTE_MS = 60_000


def change_contract(lane: Lane) -> None:
    """Change the TOML: event times a minute later, doubled sums, and a new count of big amounts."""
    text = lane.toml.read_text()
    for old, new in (
        ('event_time = "value.at"', 'event_time = "value.at + 60000"'),
        ('amount_sum = { sum = "value.amount" }', 'amount_sum = { sum = "value.amount * 2" }'),
        ("[contract.bounds]", 'big = { count = "nullif(value.amount >= 5, false)" }\n[contract.bounds]'),
    ):
        assert old in text
        text = text.replace(old, new)
    lane.toml.write_text(text)


def compute_expected(lane: Lane, cutovers: Mapping[int, int]) -> Rows:
    """Return the log's aggregates: records before the cutover by the first contract, others by the second."""
    rows: dict[tuple[object, ...], tuple[int, int, int, int | None]] = {}
    for (kafka_partition, offset), (_, value) in lane.log().items():
        record, new = json.loads(value or b""), offset >= cutovers[kafka_partition]
        at = record["at"] - NOON_MS + (MINUTE_MS if new else 0)
        key = (at // (5 * MINUTE_MS) * 5.0, record["kind"])
        events, total, largest, big = rows.get(key, (0, 0, 0, None))
        amount: int = record["amount"]
        rows[key] = (
            events + 1,
            total + amount * (2 if new else 1),
            max(largest, amount),
            (big or 0) + (amount >= 5) if new else big,
        )
    return dict(rows)


def produce_both(lane: Lane, start: int, end: int) -> None:
    """Produce a record a minute in both Kafka partitions."""
    for kafka_partition in (0, 1):
        values = [event(n, amount=n % 7, kind="ab"[n % 3 == 0]) for n in range(start, end)]
        lane.produce(values, kafka_partition)


def read_all(lane: Lane) -> None:
    """Run turns until all of the log is read; windows may stay open."""
    with lane.driver() as driver:
        for _ in range(20):
            if driver.turn().batch_id is None:
                return
    raise AssertionError("something is always left to read")


def list_cutovers(migration: Migration) -> dict[int, int]:
    return {source.kafka_partition: at for source, at in migration.cutovers}


def list_ranges(lane: Lane) -> list[tuple[int, int, int, int]]:
    """Return version, Kafka partition, start and end of each range of a landed batch."""
    rows = lane.query(
        "SELECT contract_version, kafka_partition, start_offset, end_offset FROM onceover.batch "
        "JOIN onceover.batch_range USING (batch_id) WHERE pipeline = %s AND state = 'landed' ORDER BY batch_id, 2",
        [lane.name],
    )
    return [(r["contract_version"], r["kafka_partition"], r["start_offset"], r["end_offset"]) for r in rows]


def assert_proved(lane: Lane, *windows: int) -> None:
    """Assert that sweep and audit find no difference, nor `verify` in the windows at these minutes."""
    assert lane.sweep().differing == ()
    for minute in windows:
        verified = lane.verify(minute)
        assert (verified["equal"], verified["differences"]) == (True, [])
    audited = lane.audit()
    assert audited["equal"], audited
