"""An audit counts what Kafka and raw hold, not what the ledger knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.integration.events import NOON, NOON_MS, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, delete_topic, encode_line, expire, minutes
from tests.integration.test_ledger_rebuild import certify
from tests.raw_lines import date_record, encode_append

from onceover.cli.audit_report import describe
from onceover.cli.output import Answer, print_answer
from onceover.lines.contract_names import name_contract
from onceover.model.record import Record

pytestmark = pytest.mark.stack
SIDES = ("held", "held_by_both", "only_in_raw", "only_in_kafka", "unaccounted", "aggregates")


def read_row(audit: Any, minute: int = 0) -> Any:
    (row,) = (row for row in audit["rows"] if row["window"] == f"2026-03-01T12:{minute:02}Z")
    return row


def read_sides(audit: Any, minute: int = 0) -> tuple[Any, ...]:
    row = read_row(audit, minute)
    return tuple(row[side] for side in SIDES)


def count_differing(row: Any) -> dict[str, int]:
    return {kind: ids["count"] for kind, ids in row["ids"].items()}


def produce(lane: Lane, amounts: Iterable[int], minute: int = 0) -> None:
    lane.produce([event(minute, amount=n) for n in amounts], timestamp=NOON_MS)


def append_unknown(lane: Lane, offsets: range, minute: int = 0) -> None:
    """Append the lines that an append of these offsets would have written, of which the ledger knows nothing."""
    records = [Record(lane.source(), n, NOON_MS, None, (), event(minute, amount=n)) for n in offsets]
    at = NOON_MS + minute * 60_000
    contract = name_contract(lane.pipeline.contract, 1)
    append(lane, minute, encode_append(*(date_record(record, at, contract) for record in records)))


def make_half_known(lane: Lane) -> None:
    """Leave raw and Kafka whole, and the ledger as one that came back empty and went on at the stored offset."""
    produce(lane, range(500))
    with lane.driver() as driver:
        driver.turn()  # begins behind those
    produce(lane, range(500, 1000))
    certify(lane)
    append_unknown(lane, range(500))


@pytest.mark.rare
def test_audit_counts_what_no_landing_accounts_for(lanes: Lanes, capsys: pytest.CaptureFixture[str]) -> None:
    lane = lanes(first_start="latest")
    make_half_known(lane)
    produce(lane, range(3), minute=1)
    audit = lane.audit()
    assert (audit["equal"], audit["differing"], audit["not_read_yet"]) == (False, 1, 3)
    assert read_sides(audit) == (1000, 1000, 0, 0, 500, 500)
    assert count_differing(read_row(audit)) == {"that no landing accounts for": 500}
    print_answer(Answer(None, describe(lane.name, audit)), as_json=False)
    assert "differs, 500 that no landing accounts for" in capsys.readouterr().out
    verified = lane.verify(0)
    assert verified["differences"] == ["raw: 500 records that no landing accounts for"]
    expire(lane, 500)
    audit = lane.audit(minutes(0, 5))
    assert (audit["equal"], audit["windows"], audit["offsets"]) == (False, 1, 500)
    assert read_sides(audit) == (1000, 500, 500, 0, 500, 500)


@pytest.mark.largest
def test_audit_of_the_log_begins_where_reading_began(lanes: Lanes) -> None:
    lane = lanes(first_start="latest")
    produce(lane, range(5))
    lane.turn()
    produce(lane, range(5, 8))
    certify(lane)
    audit = lane.audit()
    assert audit["equal"], "the first five were never to be read"
    assert read_sides(audit) == (3, 3, 0, 0, 0, 3)


@pytest.mark.largest
def test_audit_without_a_topic_compares_raw_with_the_rows(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(3))
    certify(lane)
    delete_topic(lane)
    audit = lane.audit()
    assert (audit["equal"], read_sides(audit)) == (True, (3, 0, 3, 0, 0, 3))
    append_unknown(lane, range(7, 9))
    assert read_sides(lane.audit()) == (5, 0, 5, 0, 2, 3)
    assert lane.verify(0)["differences"] == ["raw: 2 records that no landing accounts for"]


@pytest.mark.largest
def test_audit_names_what_is_wrong_with_each_window(lanes: Lanes) -> None:
    lane = lanes()
    for minute, records in ((0, 4), (5, 2), (10, 3), (15, 1)):
        produce(lane, range(records), minute)
    certify(lane)
    expire(lane, 6)
    assert lane.audit()["equal"], "raw holds what has expired"
    lane.query(f"DELETE FROM aggregates.{lane.name} WHERE window_start = %s", [NOON])
    lane.query('DELETE FROM onceover."window" WHERE pipeline = %s AND window_start = %s', [lane.name, NOON])
    lane.store().remove(lane.window_file(5))
    append(lane, 10, encode_line(lane, 7, event(10, amount=9)))
    audit = lane.audit()
    unknown, lost, doubled, right = (read_row(audit, minute) for minute in (0, 5, 10, 15))
    assert [row["equal"] for row in (unknown, lost, doubled, right)] == [False, False, False, True]
    assert (read_sides(audit, 0), unknown["rows"]) == ((4, 0, 4, 0, 0, None), ["+ (a,4,6,3)"])
    assert (read_sides(audit, 5), lost["rows"]) == ((0, 0, 0, 0, 0, 2), ["- (a,2,1,1)"])
    assert count_differing(doubled) == {"several contents or windows in raw": 1}
    assert doubled["not_compared"] == "IDs have several contents under one leader epoch"


@pytest.mark.largest
def test_loss_stated_of_a_held_record_is_a_difference(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(3))
    certify(lane)
    lane.query(
        "INSERT INTO onceover.accepted_loss (pipeline, generation, kafka_partition, start_offset, end_offset, "
        "first_window, end_window, who, why) VALUES (%s, %s, 0, 3, 4, %s, %s, 'me', 'a test')",
        [lane.name, lane.source().generation, NOON, minutes(0, 5).end],
    )
    append_unknown(lane, range(3, 4))  # by a writer that was thought dead; no repair has counted it yet
    assert count_differing(read_row(lane.audit())) == {"held, but accepted as lost": 1}
