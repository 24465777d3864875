"""Values that Spark would round, complete or wrap around: each counts as it was written, or is in quarantine."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.integration.lane import Lanes
from tests.integration.planted_failures import land_twice

from onceover.observability.metric_values import read_signals

pytestmark = pytest.mark.stack
SALES = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
schema = "at STRING, amount DECIMAL(12,2), bytes DOUBLE"
required = ["at", "amount"]
event_time = "to_timestamp(value.at)"
on_null = "skip"
[contract.measures]
sales = {{ count = "*" }}
amount = {{ sum = "value.amount" }}
bytes = {{ sum = "CAST(value.bytes AS DECIMAL(18, 6))" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
NOON = '"2026-03-01T12:00:01Z"'
TAKEN = ["12.5", '"12.50"', "-3", "1e2", "1.500", "0.01", '"0.99"']
REFUSED = ['"12,50"', '"1.234,56"', '"1,2,3"', '"١٢"', "1.005", "0.004", '"many"', "10000000000"]


def sale(at: str = NOON, amount: str = "1", size: str = "1.5") -> bytes:
    return f'{{"at":{at},"amount":{amount},"bytes":{size}}}'.encode()


def test_values_count_as_written_or_not_at_all(lanes: Lanes) -> None:
    lane = lanes(SALES)
    good = [*(sale(amount=text) for text in TAKEN), sale(size="2e12"), sale(size="null")]
    refused = {
        **{sale(amount=text): "unparseable: field amount is no DECIMAL(12,2)" for text in REFUSED},
        **{sale(at=f'"{text}"'): "SQL failed: event_time" for text in ("12:30", "T09:15:00", "soon")},
        b"\x00\x00\x00\x00\x07{}": "unparseable: Confluent's wire format, schema ID 7",
    }
    land_twice(lane, [*good, *refused])

    found = [line for name, line in lane.lines() if line.reason]
    assert {line.record.value: line.reason for line in found} == refused
    lane.repair_detected()
    read = [json.loads(text, parse_float=Decimal, parse_int=Decimal) for text in good]  # no float comes between
    amounts = sum((Decimal(each["amount"]) for each in read), Decimal())
    sizes = sum((each["bytes"] for each in read if each["bytes"] not in (None, Decimal("2e12"))), Decimal())
    assert lane.aggregates() == {(0.0,): (len(good), amounts, sizes, 0, 1)}

    assert "Measure bytes skipped 1 record: its SQL had no exact result." in lane.explain_text(0)
    with lane.ledger() as ledger:
        (signals,) = (each for each in read_signals(ledger, timedelta(hours=1)) if each.pipeline == lane.name)
    assert signals.skipped == {"amount": 0, "bytes": 1}
