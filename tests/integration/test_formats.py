"""Records that are no plain JSON, with headers, through the whole loop: SQL sees them decoded, raw has Kafka's."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from decimal import Decimal

import pytest
import zstandard
from tests.integration.events import NOON_MS
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import minutes, replay
from tests.integration.program import as_json
from tests.integration.releases import release

pytestmark = pytest.mark.stack
TRIPS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "csv"
compression = "gzip"
schema = "at BIGINT, city STRING, fare DECIMAL(10, 2)"
required = ["at", "fare"]
event_time = "value.at"
[contract.csv]
separator = ";"
[contract.keys]
city = "value.city"
tenant = "header('tenant')"
kafka_partition = "kafka_partition"
[contract.measures]
trips = {{ count = "*" }}
cheap = {{ count_if = "value.fare < 10" }}
fare = {{ sum = "value.fare" }}
first_offset = {{ min = "kafka_offset" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
CITIES = ["Oslo", 'the "old"; town', "", "a\nb"]


def write_row(number: int) -> bytes:
    text = io.StringIO()
    fare = f"{number}.{number % 100:02}"
    csv.writer(text, delimiter=";").writerow([NOON_MS + number * 30_000, CITIES[number % 4], fare])
    return text.getvalue().encode()


def produce(lane: Lane, values: Sequence[bytes], kafka_partition: int) -> None:
    lane.produce(values, kafka_partition, headers=[("tenant", b"old"), ("trace", b"\x00\xff"), ("tenant", b"acme")])


def test_compressed_csv_with_headers_is_counted_and_proved(lanes: Lanes) -> None:
    lane = lanes(TRIPS)
    produce(lane, [gzip.compress(write_row(number)) for number in range(20)], 0)
    produce(lane, [write_row(21), gzip.compress(b"soon;Oslo;1.00")], 0)
    replay(lane)
    lane.ingest()

    assert {at: value for at, (_, value) in lane.log().items()} == {
        (line.record.source.kafka_partition, line.record.offset): line.record.value for _, line in lane.lines()
    }
    assert sorted(lane.reasons().values()) == [
        "unparseable: field at is no BIGINT",
        "unparseable: not exactly a value of gzip",
    ]
    lane.repair_detected()
    assert lane.aggregates() == count_rows(range(20), 1)
    assert lane.repair_detected(minutes(0, 10), by_value=True, force=True).failed == ()
    assert lane.aggregates() == count_rows(range(20), 1)


@pytest.mark.rare
def test_codec_changes_at_a_cutover_and_refused_are_released(lanes: Lanes) -> None:
    lane = lanes(TRIPS, partitions=2)
    of_zstd = zstandard.ZstdCompressor().compress
    for kafka_partition in (0, 1):
        produce(lane, [gzip.compress(write_row(number)) for number in range(20)], kafka_partition)
        produce(lane, [of_zstd(write_row(20)), write_row(21)], kafka_partition)
    lane.ingest()
    assert lane.detect().failed == ()
    assert lane.verify(0)["equal"]
    assert lane.audit(minutes(0, 10))["equal"]

    lane.toml.write_text(lane.toml.read_text().replace('compression = "gzip"', 'compression = "zstd"'))
    lane.migrate()
    assert sum(release(lane).windows.values()) == 2
    produce(lane, [of_zstd(write_row(number)) for number in range(21, 29)], 0)
    lane.ingest()
    assert lane.detect().failed == ()
    assert lane.repair_detected(minutes(0, 15), by_value=True, force=True).failed == ()
    expected = count_rows(range(21), 2)
    for key, row in count_rows(range(21, 29), 1).items():
        trips, cheap, fare, first = expected.get(key, (0, 0, Decimal(), 100))
        expected[key] = (trips + row[0], cheap + row[1], fare + row[2], min(first, 22 + row[3]))
    assert lane.aggregates() == expected
    assert lane.audit(minutes(0, 15))["equal"]


def count_rows(numbers: range, kafka_partitions: int) -> dict[tuple[object, ...], tuple[int, int, Decimal, int]]:
    """Return the aggregates of these rows in these Kafka partitions, in each from offset 0 on, without SQL."""
    rows: dict[tuple[object, ...], tuple[int, int, Decimal, int]] = {}
    for place, number in enumerate(numbers):
        for kafka_partition in range(kafka_partitions):
            key = (number * 0.5 // 5 * 5.0, CITIES[number % 4] or None, "acme", kafka_partition)
            trips, cheap, fare, first = rows.get(key, (0, 0, Decimal(), place))
            added = Decimal(f"{number}.{number % 100:02}")
            rows[key] = (trips + 1, cheap + (added < 10), fare + added, min(first, place))
    return rows


@pytest.mark.rare
def test_sample_shows_what_sql_makes_of_headers(lanes: Lanes) -> None:
    lane = lanes(TRIPS)
    produce(lane, [gzip.compress(write_row(1)), b"x"], 0)

    sample = as_json("pipelines", "check", lane.name, "--sample", "10")

    assert json.dumps(sample).count("acme") == 1
