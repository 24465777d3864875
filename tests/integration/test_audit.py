"""Proofs are repeated: certificates from raw, raw and the aggregates from Kafka's log."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.events import NOON, event, moment
from tests.integration.lane import Lanes
from tests.integration.planted_failures import (
    append,
    encode_line,
    expire,
    land_twice,
    minutes,
    produce_transaction,
    replay,
)

from onceover.errors import BusyError, TerminalError, UsageError
from onceover.ledger.certificates import read_certificate
from onceover.repair import revisions

pytestmark = pytest.mark.stack


def group_by_window(audit: Any) -> dict[str, Any]:
    return {row["window"][-6:]: row for row in audit["rows"]}


def test_audit_agrees_after_repair_and_names_each_difference(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    lane.produce([b"rubbish"])
    replay(lane)
    produce_transaction(lane, [event(3)], commit=False)
    lane.ingest()
    before = group_by_window(lane.audit())
    assert (before["12:00Z"]["kafka"], before["12:00Z"]["raw"], before["12:00Z"]["aggregates"]) == (5, 5, 10)
    assert (before["12:00Z"]["equal"], before["12:00Z"]["rows_differing"]) == (False, 2)
    assert (before["12:00Z"]["raw_lines"], before["antine"]["kafka"]) == (10, 1)
    lane.repair_detected()
    after = lane.audit()
    assert (after["equal"], after["windows"], after["records"]) == (True, 3, 11)
    assert lane.audit(minutes(0, 5))["windows"] == 1
    verified = lane.verify(0)
    assert (verified["equal"], verified["differences"], verified["valid"]) == (True, [], True)
    assert verified["basis"] == "raw"

    # A row is changed by hand, and raw loses one line and gets another in its place: counts alone see nothing.
    lane.query(f"UPDATE aggregates.{lane.name} SET amount_sum = 9 WHERE window_start = %s", [NOON])
    path = lane.window_file(5)
    stranger = encode_line(lane, 9, event(8, amount=99))
    lines = [one for one in lane.read(path).split(b"\n") if one]
    lane.overwrite(path, b"\n" + b"\n".join(one for one in lines if b'"amount": 8' not in one) + b"\n")
    append(lane, 5, stranger)
    found = group_by_window(lane.audit())
    assert found["12:00Z"]["rows"] == ["+ (a,5,10,4)", "- (a,5,9,4)"]
    ids = found["12:05Z"]["ids"]
    assert {kind: one["count"] for kind, one in ids.items()} == {
        "in Kafka, not in raw": 1, "several contents or windows in raw": 1
    }  # fmt: skip
    assert ids["in Kafka, not in raw"]["first"][0].endswith("-0000000000000000008")
    assert lane.verify(0)["differences"] == [
        "aggregates: 2 rows differ (- the table's, + raw's): + (a,5,10,4); - (a,5,9,4)"
    ]
    (clash,) = [each for each in lane.verify(5)["differences"] if "two contents" in each]
    assert clash.startswith("raw: 1 ID with two contents under one leader epoch: ")


@pytest.mark.rare
def test_audit_leaves_out_and_reports_expired_offsets(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(10)])
    lane.detect()
    expire(lane, 7)
    found = group_by_window(lane.audit())
    assert (found["12:05Z"]["kafka"], found["12:05Z"]["raw"], found["12:05Z"]["only_in_raw"]) == (3, 5, 2)
    assert found["12:05Z"]["aggregates"] == 5, "raw holds what Kafka has lost"
    assert found["12:05Z"]["equal"]
    assert lane.verify(0)["equal"], "raw and the certificate need no log"
    with lane.ledger() as ledger, pytest.raises(TerminalError, match="no certificate"):
        read_certificate(ledger, lane.name, moment(10))


@pytest.mark.rare
def test_audit_restores_replaced_rows_as_a_revision_until_repair(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n, amount=n) for n in range(5)])
    wrong = lane.aggregates()
    lane.repair_detected()
    right = lane.aggregates()
    with lane.ledger() as ledger:
        with pytest.raises(UsageError, match="no kept revision 7; available: 0"):
            revisions.restore_revision(ledger, lane.registered(), NOON, 7, "me", "why")
        done = revisions.restore_revision(ledger, lane.registered(), NOON, None, "me", "the contract was wrong")
        assert (done.source, done.revision, done.rows, done.records) == (0, 2, 1, 10)
        held = (
            "UPDATE onceover.\"window\" SET claimed_by = 'x', claimed_until = now() + interval '%s' WHERE pipeline = %s"
        )
        ledger.execute(held.replace("'%s'", "'1 minute'"), [lane.name])
        with pytest.raises(BusyError):
            revisions.restore_revision(ledger, lane.registered(), NOON, None, "me", "why")
        ledger.execute(held.replace("'%s'", "'-1 minute'"), [lane.name])
        again = revisions.restore_revision(ledger, lane.registered(), NOON, None, "me", "the contract was wrong")
        assert (again.source, again.revision) == (0, 3), "it does not undo itself"
    assert lane.aggregates() == wrong
    verified = lane.verify(0)
    assert (verified["equal"], verified["valid"]) == (False, False)
    assert any(one.startswith("aggregates: 2 rows differ") for one in verified["differences"])
    scheduled = lane.detect()
    assert (scheduled.blocked, scheduled.request_id) == (1, None), "what a person decided is not undone by a schedule"
    explained = lane.explain(0)
    assert explained["state"] == "blocked"
    assert "restored to revision 0 by me: the contract was wrong" in explained["ledger"]["window"]["blocked_why"]
    lane.repair_detected(minutes(0, 5))
    assert lane.aggregates() == right
    assert lane.verify(0)["equal"]


@pytest.mark.rare
def test_rows_changed_by_hand_are_of_unknown_count_until_repair(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(5)])
    lane.detect()
    right = lane.aggregates()
    lane.query(f"DELETE FROM aggregates.{lane.name}")
    assert lane.sweep().reopened == 1
    explanation = lane.explain_text(0)
    assert "readers see an unknown number of records" in explanation
    assert "Rows of the aggregates were changed after they were certified." in explanation
    (planned,) = lane.plan(minutes(0, 5))
    assert (planned.counted, planned.distinct, planned.change) == (None, 5, None)
    (row,) = lane.audit()["rows"]
    assert (row["equal"], row["aggregates"], row["rows_differing"]) == (False, None, 1)

    lane.produce([event(1, amount=7)])
    lane.ingest()  # what is added to an unknown count leaves it unknown
    assert lane.explain(0)["ledger"]["window"]["records"] is None
    lane.repair_detected()
    assert lane.aggregates() == {(0, "a"): (6, 17, 7)} != right
    assert (
        "Before: an unknown number of records counted (revision 0); after: 6 records (revision 1)."
        in lane.explain_text(0)
    )
    with lane.ledger() as ledger:
        back = revisions.restore_revision(ledger, lane.registered(), NOON, None, "me", "why")
    assert (back.rows, back.records) == (1, None)
    lane.repair_detected(minutes(0, 5))
    assert lane.verify(0)["equal"]
