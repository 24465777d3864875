"""History restated where raw is on HBase, has expired in part or was compacted, and where values are Avro."""

from __future__ import annotations

from decimal import Decimal

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.integration.compaction import expire_text
from tests.integration.cutover import assert_proved
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on
from tests.integration.planted_failures import backdate, minutes
from tests.integration.program import as_json
from tests.integration.test_avro_topics import Writer, make_lane, make_schema, stopped
from tests.integration.test_restate import certify_and_correct, compute, correct, restate

from onceover.errors import UsageError
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def test_raw_on_hbase_is_restated(lanes: Lanes, stack: Stack) -> None:
    lane = put_on("hbase", lanes, stack)(partitions=2)
    at = certify_and_correct(lane)
    assert restate(lane, minutes(0, 20)).failed == ()
    assert lane.aggregates() == compute(lane, at, range(20))
    assert_proved(lane, 0, 25)


def test_compacted_windows_are_restated(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    at = certify_and_correct(lane)
    lane.compact()
    assert expire_text(lane) == 8
    assert not [name for name in lane.raw() if name.endswith("00.log") and not name.startswith("expired")]
    assert restate(lane, minutes(0, 20)).failed == ()
    assert lane.aggregates() == compute(lane, at, range(20))
    assert_proved(lane, 0, 25)


def test_expired_windows_are_named_and_the_rest_restated(lanes: Lanes) -> None:
    lane = lanes(partitions=2, more='[storage]\nretention = "30d"')
    lane.land([event(1), event(6)])
    lane.detect()
    backdate(lane)
    assert as_json("retention", lane.name, "--reason", "room")["expired"] == 2
    before = lane.aggregates()
    lane.land([event(n) for n in range(10, 40)])
    lane.detect()
    correct(lane)
    at = {source.kafka_partition: offset for source, offset in lane.migrate().cutovers}
    with pytest.raises(UsageError, match=r"2026-03-01T12:00Z.*expired"):
        restate(lane, minutes(0, 20))
    assert restate(lane, minutes(10, 20)).failed == ()
    expected = {place: row for place, row in compute(lane, at, range(10, 20)).items() if place not in before}
    assert {place: row for place, row in lane.aggregates().items() if place not in before} == expected
    assert {place: row[:3] for place, row in lane.aggregates().items() if place in before} == before
    assert lane.sweep().differing == ()


def test_avro_is_restated_without_the_registry(lanes: Lanes, stack: Stack, registry: str) -> None:
    lane = make_lane(lanes)
    with SchemaRegistryClient({"url": registry}) as client:
        writer = Writer(client, lane, make_schema("long"))
        lane.land([writer.write(number, seats=number % 4) for number in range(40)])
    lane.detect()
    text = lane.toml.read_text().replace("value.fare", "CAST(value.fare * 100 AS DECIMAL(10, 2))")
    lane.toml.write_text(text.replace("value.city", "upper(value.city)"))
    lane.migrate()
    with stopped(stack):
        assert restate(lane, minutes(0, 10)).failed == ()
    expected: dict[tuple[object, ...], tuple[int, Decimal, int]] = {}
    for number in range(40):
        is_restated, city = number < 20, ["Oslo", None][number % 2]
        key = (number * 0.5 // 5 * 5.0, "OSLO" if city and is_restated else city)
        trips, fare, seats = expected.get(key, (0, Decimal(), 0))
        fare += Decimal(number) / 4 * (100 if is_restated else 1)
        expected[key] = (trips + 1, fare, seats + number % 4)
    assert lane.aggregates() == expected
    assert lane.sweep().differing == ()
    assert lane.verify(0)["equal"]
