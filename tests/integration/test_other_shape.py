"""A second pipeline of another shape, made only by writing a TOML; and what has no place in it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from tests.integration.events import NOON_MS
from tests.integration.lane import Lanes
from tests.integration.planted_failures import replay

pytestmark = [pytest.mark.stack, pytest.mark.largest]
PAYMENTS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "json"
schema = "order STRUCT<paid_at: STRING, shop: STRING>, net DECIMAL(12,2), method STRING, items INT"
required = ["order", "net"]
event_time = "to_timestamp(value.order.paid_at)"
[contract.keys]
shop = "upper(value.order.shop)"
large = "value.net >= 100"
[contract.measures]
payments = {{ count = "*" }}
with_items = {{ count = "value.items" }}
net = {{ sum = "value.net" }}
first_method = {{ min = "value.method" }}
last_paid = {{ max = "to_timestamp(value.order.paid_at)" }}
[contract.bounds]
horizon = "1h"
skew = "10m"
[ingest]
idle_after = "{idle_after}"
[kafka]
"client.id" = "payments"
"""


def payment(at: str, net: str, shop: str | None = "a", method: str = "card", items: int | None = None) -> bytes:
    whole = {"order": {"paid_at": f"2026-03-01T{at}Z", "shop": shop}, "net": 0, "method": method}
    text = json.dumps(whole | ({"items": items} if items is not None else {}))
    return text.replace('"net": 0', f'"net": {net}').encode()


def test_pipeline_of_another_shape_goes_through_the_whole_loop(lanes: Lanes) -> None:
    lane = lanes(PAYMENTS, partitions=3)
    good = [
        payment("12:00:00", "10.10", "b", "cash", 1),
        payment("12:04:59", "0.01", "B", "card"),
        payment("12:04:59.999", "200", "b"),
        payment("12:05:00", "5", None, "zz", 2),
        payment("12:07:00", "-7.25", None, "aa"),
    ]
    rubbish = [
        b"{not json",
        None,
        payment("10:00:00", "1"),  # two hours before its Kafka timestamp, horizon one hour
        payment("13:00:00", "1"),  # an hour after it, skew ten minutes
        b'{"net": 1}',
        b'{"order": {"paid_at": "yesterday"}, "net": 1}',
        payment("12:00:00", '"many"'),
    ]
    for n, value in enumerate([*good, *rubbish]):
        lane.produce([value], kafka_partition=n % 3, timestamp=NOON_MS + 120_000)
    replay(lane)
    lane.ingest()
    reasons = sorted({x.reason or "" for _, x in lane.lines() if x.reason})
    assert len(reasons) >= 5, reasons
    kept = {(x.record.source.kafka_partition, x.record.offset): x.record.value for _, x in lane.lines()}
    assert kept == {at: value for at, (_, value) in lane.log().items()}

    detection = lane.detect()
    assert len(detection.failed) == 2
    confirmation = lane.repair(detection.request_id)
    assert (len(confirmation.confirmed), confirmation.duplicates) == (2, 5)
    found = {key: (*row[:4], str(row[4])) for key, row in lane.aggregates().items()}
    assert found == {
        (0.0, "B", False): (2, 1, Decimal("10.11"), "card", "2026-03-01 12:04:59+00:00"),
        (0.0, "B", True): (1, 0, Decimal("200.00"), "card", "2026-03-01 12:04:59.999000+00:00"),
        (5.0, None, False): (2, 1, Decimal("-2.25"), "aa", "2026-03-01 12:07:00+00:00"),
    }
