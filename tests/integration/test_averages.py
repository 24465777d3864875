"""Averages, values by event time and distinct counts on the real stack, against plain Python over the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from tests.integration.cutover import assert_proved, read_all
from tests.integration.events import NOON_MS, Rows, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import make_ledger
from tests.integration.planted_failures import minutes, replay
from tests.integration.program import succeed

from onceover.errors import UsageError
from onceover.explain.page.numbers import read_numbers

pytestmark = pytest.mark.stack
MEASURES = """
mean = {{ avg = "value.amount", scale = 3 }}
first_word = {{ min_by = "value.word" }}
last_amount = {{ max_by = "value.amount" }}
words = {{ approx_count_distinct = "value.word" }}
"""
PLAIN = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
schema = "at BIGINT, kind STRING, amount DECIMAL(9, 2), word STRING"
event_time = "value.at"
on_null = "skip"
[contract.keys]
kind = "value.kind"
[contract.measures]
events = {{ count = "*" }}
MEASURES
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
WORDS = ["", "tab\tand\nline", "back\\slash", "\N{SNOWMAN}", None]


def write_record(number: int, kafka_partition: int) -> bytes:
    """Return a record of one of four windows, keys a and b; several have one event time, and some have no amount."""
    at = NOON_MS + (number * 7 % 20) // 2 * 120_000
    amount = None if number % 11 == 0 else f"{(number - 30) * (kafka_partition + 1)}.{number % 100:02}"
    return json.dumps({"at": at, "kind": "ab"[number % 2], "amount": amount, "word": WORDS[number % 5]}).encode()


def produce(lane: Lane, start: int, end: int) -> None:
    for kafka_partition in (0, 1):
        lane.produce([write_record(number, kafka_partition) for number in range(start, end)], kafka_partition)


def compute(lane: Lane) -> Rows:
    """Return count, mean, first word, last amount and number of words by row, over the topic read by another client."""
    rows: dict[tuple[float, str], list[tuple[tuple[int, int, int], Mapping[str, Any]]]] = {}
    for (kafka_partition, offset), (_, value) in lane.log().items():
        record = json.loads(value or b"")
        place = ((record["at"] - NOON_MS) // 300_000 * 5.0, record["kind"])
        rows.setdefault(place, []).append(((record["at"], kafka_partition, offset), record))
    return {place: summarize(sorted(records, key=lambda each: each[0])) for place, records in rows.items()}


def summarize(records: list[tuple[tuple[int, int, int], Mapping[str, Any]]]) -> tuple[object, ...]:
    amounts = [Decimal(record["amount"]) for _, record in records if record["amount"] is not None]
    words = [record["word"] for _, record in records if record["word"] is not None]
    mean = (sum(amounts, Decimal(0)) / len(amounts)).quantize(Decimal("0.001"), ROUND_HALF_UP) if amounts else None
    return len(records), mean, words[0] if words else None, amounts[-1] if amounts else None, len(set(words)) or None


def read(lane: Lane) -> Rows:
    """Return the same of the aggregates, as a reader selects them."""
    names = [column.name for column in lane.registered().columns.values]
    picked = [names.index(name) for name in ("events", "mean", "first_word", "last_amount", "words")]
    return {place: tuple(row[each] for each in picked) for place, row in lane.aggregates().items()}


def test_averages_are_exact_near_real_time_and_repaired(lanes: Lanes) -> None:
    lane = lanes(PLAIN.replace("MEASURES", MEASURES), partitions=2)
    for start in (0, 20, 40):
        produce(lane, start, start + 20)
        with lane.driver() as driver:
            driver.turn()
    assert read(lane) == compute(lane), "each batch merged with the rows before"
    assert len(read(lane)) == 8

    produce(lane, 60, 70)
    replay(lane)
    assert read(lane) != compute(lane), "a batch counted twice"
    lane.ingest()
    lane.repair_detected()
    assert read(lane) == compute(lane)
    assert lane.repair_detected(minutes(0, 20), by_value=True, force=True).failed == ()
    assert read(lane) == compute(lane)
    assert_proved(lane, 0)


@pytest.mark.rare
def test_average_is_added_restored_and_rebuilt(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(PLAIN.replace("MEASURES", ""), partitions=2, idle_after="1h")
    produce(lane, 0, 30)
    read_all(lane)
    lane.toml.write_text(lane.toml.read_text().replace("[contract.bounds]", MEASURES.format() + "[contract.bounds]"))
    migrated = lane.migrate()
    assert (migrated.added, migrated.changed) == (("mean", "first_word", "last_amount", "words"), ("measures",))
    produce(lane, 30, 60)
    replay(lane)
    lane.toml.write_text(lane.toml.read_text().replace('idle_after = "1h"', 'idle_after = "1ms"'))
    lane.ingest()
    wrong = lane.aggregates()
    lane.repair_detected()
    right = lane.aggregates()
    assert right != wrong
    assert_proved(lane, 0, 5)
    with lane.ledger() as ledger:
        numbers = read_numbers(ledger, lane.name, moment(0))
    shown = ["events", "mean_sum", "mean_count", "mean_skipped", "first_word_skipped", "last_amount_skipped",
             "words_skipped", "mean", "first_word", "last_amount", "words"]  # fmt: skip
    assert numbers["measures"] == shown, "no sketch, and no text of a record's time, ID and value"
    assert numbers["rows"][0]["before"].keys() == set(shown)
    succeed("restore", lane.name, "2026-03-01T12:00Z", "--reason", "a test")
    assert pick_noon(lane.aggregates()) == pick_noon(wrong) != pick_noon(right)
    lane.repair_detected(minutes(0, 20), force=True)
    assert lane.aggregates() == right

    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    lane.rebuild()
    lane.ingest()
    lane.repair_detected(minutes(0, 20), force=True)
    assert lane.aggregates() == right
    monkeypatch.undo()

    for changed, refused in (("scale = 3", "measure mean has the scale 2, not 3"),
                             ("last_amount = { max_by", "measure last_amount is a min_by, not a max_by"),
                             ('min_by = "value.word"', "measure first_word is of type boolean, not text")):  # fmt: skip
        before = lane.toml.read_text()
        new = {"scale = 3": "scale = 2", "last_amount = { max_by": "last_amount = { min_by",
               'min_by = "value.word"': 'min_by = "value.word > 1"'}[changed]  # fmt: skip
        lane.toml.write_text(before.replace(changed, new))
        with pytest.raises(UsageError, match=refused):
            lane.migrate()
        lane.toml.write_text(before)


def pick_noon(rows: Rows) -> Rows:
    return {place: row for place, row in rows.items() if place[0] == 0.0}
