"""The records of lanes, the contract that counts them, and what the aggregates have to be for them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from onceover.model.window import from_ms

EVENTS = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "json"
schema = "at BIGINT, kind STRING, amount INT"
required = ["at", "kind"]
event_time = "value.at"
[contract.keys]
kind = "value.kind"
[contract.measures]
events = {{ count = "*" }}
amount_sum = {{ sum = "value.amount" }}
amount_max = {{ max = "value.amount" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
allowed_lateness = "10m"
idle_after = "{idle_after}"
interval = "200ms"
max_records_per_batch = {most}
first_start = "{first_start}"
offset_store = "{offset_store}"
{more}
"""
Rows = dict[tuple[object, ...], tuple[object, ...]]
"""Measures of aggregates by minutes after noon and keys."""
NOON_MS = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)


def fill_toml(topic: str, toml: str = EVENTS, **settings: object) -> str:
    """Return a TOML of lanes with its settings."""
    defaults = {"minutes": 5, "most": 100_000, "idle_after": "1ms", "first_start": "earliest",
                "offset_store": "kafka", "more": ""}  # fmt: skip
    return toml.format(topic=topic, **{**defaults, **settings})


def moment(minute: float) -> datetime:
    """Return the time that many minutes after noon."""
    return from_ms(NOON_MS + int(minute * 60_000))


def count_minutes(at: datetime) -> float:
    """Return how many minutes after noon that is."""
    return (at.timestamp() * 1000 - NOON_MS) / 60_000


NOON, FIVE_PAST = moment(0), moment(5)


def event(minute: float, kind: str = "a", amount: int = 1) -> bytes:
    """Return a record of that many minutes after noon."""
    return json.dumps({"at": NOON_MS + int(minute * 60_000), "kind": kind, "amount": amount}).encode()


def count_events(values: Iterable[bytes]) -> Rows:
    """Return what the aggregates have to be for these records, computed without SQL; a nameless one is of `none`."""
    amounts: dict[tuple[object, ...], list[int]] = {}
    for record in map(json.loads, values):
        key = ((record["at"] - NOON_MS) // 300_000 * 5.0, record.get("kind", "none"))
        amounts.setdefault(key, []).append(record["amount"])
    return {key: (len(each), sum(each), max(each)) for key, each in amounts.items()}
