"""Lines of a log that the pipeline never read: named, and not counted."""

from __future__ import annotations

import pytest
from tests.integration.events import NOON_MS, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append
from tests.raw_lines import change_record, encode_append

from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition
from onceover.model.window import from_ms

pytestmark = [pytest.mark.stack, pytest.mark.rare]
RIGHT = {(0.0, "a"): (5, 10, 4)}


def land(lane: Lane) -> None:
    lane.land([event(n, amount=n) for n in range(5)])


def append_foreign_lines(lane: Lane) -> None:
    """Of a generation and of a Kafka partition that the pipeline never read."""
    own = next(each for _, each in lane.lines())
    for source in ("0badcafe", 0), (own.record.source.generation, 99_999):
        append(lane, 0, encode_append(change_record(own, source=KafkaPartition(*source), offset=1)))


def test_lines_of_a_log_never_read_are_named_and_not_counted(lanes: Lanes) -> None:
    lane = lanes()
    land(lane)
    append_foreign_lines(lane)
    detection = lane.detect()
    assert len(lane.repair(detection.request_id or 0).confirmed) == 1
    assert lane.aggregates() == RIGHT
    known = "SELECT kafka_partition, reach FROM onceover.kafka_partition WHERE pipeline = %s"
    assert lane.query(known, [lane.name]) == [{"kafka_partition": 0, "reach": 5}], "no watermark stops"
    explained = lane.explain(0)
    assert {Kind(f["kind"]) for f in explained["ledger"]["findings"]} == {Kind.UNACCOUNTED_BYTES, Kind.STRAY_LINE}
    assert (explained["state"], explained["findings"], lane.detect().judged) == ("certified", [], 0)
    assert lane.verify(from_ms(NOON_MS))["differences"] == ["raw: 2 records that no landing accounts for"]
