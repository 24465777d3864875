"""Records that only raw holds: found by a repair, adopted, and certified with all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.lane import NOON_MS, Lane
from tests.integration.orphans import (
    accept_loss,
    append_and_die,
    die_after,
    forget_below,
    land,
    produce,
    repair,
    sum_up,
)
from tests.integration.planted_failures import count_certified, expire, list_gaps, minutes
from tests.raw_lines import change_record, encode_append

from onceover.errors import UsageError
from onceover.fault_points import Step
from onceover.model.finding_kinds import Kind
from onceover.model.window import from_ms
from onceover.repair import quarantined

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]


def test_orphans_of_closed_windows_are_adopted_and_certified(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    with lane.driver() as driver:
        driver.turn()
    produce(lane, range(50, 100))
    lane.ingest()
    forget_below(lane, 50)
    expire(lane, 50)
    repair(lane)
    assert lane.aggregates() == sum_up(range(100))
    assert count_certified(lane) == 2
    assert lane.detect().findings == ()
    assert lane.verify(from_ms(NOON_MS))["equal"]
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["basis"], [each["records"] for each in rests_on["adopted"]]) == ("raw", [25])
    assert (rests_on["by_columns"], rests_on["by_value"]) == (50, 0)
    assert "25 records adopted from raw at" in lane.explain_text(0)


@pytest.mark.largest
@pytest.mark.rare
def test_appended_and_expired_records_are_adopted_not_lost(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    with lane.driver() as driver:
        driver.turn()
    append_and_die(lane, range(50, 100))
    expire(lane, 100)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    assert list_gaps(lane) == [(50, 100, "expired")]
    with pytest.raises(UsageError, match="raw holds its record, in the file of window 2026-03-01T12:00Z"):
        accept_loss(lane, 50, 100)
    with lane.ledger() as ledger:
        ledger.execute(
            'UPDATE onceover."window" SET tries = 3, blocked_at = now(), blocked_why = %s WHERE pipeline = %s',
            ["reading raw failed", lane.name],
        )
    assert lane.detect().request_id is None
    assert lane.repair(lane.detect(minutes(0, 10)).request_id or 0).failed == ()
    assert list_gaps(lane) == []
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up(range(100))
    assert count_certified(lane) == 2


@pytest.mark.largest
@pytest.mark.rare
def test_pending_record_that_expires_is_adopted(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    append_and_die(lane, range(50, 60))
    for start in (0, 5):
        request = lane.detect(minutes(start, start + 5), force=True).request_id
        assert lane.repair(request or 0).failed == ()
    assert lane.aggregates() == sum_up(range(50)), "what Kafka holds is read again, and counts then"
    assert lane.detect().failed == ()
    expire(lane, 60)
    (first, second) = lane.detect().failed
    assert [f.kind for f in (*first.findings, *second.findings)] == [Kind.PENDING_RECORD] * 2
    repair(lane)
    assert lane.aggregates() == sum_up(range(60))
    assert count_certified(lane) == 2


@pytest.mark.largest
@pytest.mark.rare
def test_pending_record_that_lands_is_counted_once(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    append_and_die(lane, range(50, 60))
    request = lane.detect(minutes(0, 10), force=True).request_id
    assert lane.repair(request or 0).failed == ()
    assert lane.aggregates() == sum_up(range(50))
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up(range(60))
    assert count_certified(lane) == 2


@pytest.mark.largest
@pytest.mark.rare
def test_quarantined_orphans_are_adopted_as_quarantined(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = land(lanes, 10)
    lane.produce([b"rubbish", b"more rubbish"])
    die_after(lane, Step.APPENDED)
    expire(lane, 12)
    with lane.driver() as driver:
        driver.turn()
    assert list_gaps(lane) == [(10, 12, "expired")]
    with monkeypatch.context() as patch:
        patch.setattr(quarantined, "adopt", lambda *_: [])  # as if one of them landed meanwhile
        repair_once(lane)
    append_other_content(lane, 10)
    repair(lane)
    assert list_gaps(lane) == []
    with lane.ledger() as ledger:
        rows = ledger.execute(
            "SELECT records FROM onceover.landing WHERE pipeline = %s AND quarantine_day IS NOT NULL", [lane.name]
        ).fetchall()
    assert [row["records"] for row in rows] == [2]
    assert lane.detect().request_id is None
    append_other_content(lane, 10, 20)
    repair(lane)  # the log ends before, so the line waits, and no schedule starts Spark for it
    produce(lane, range(12, 21))
    assert lane.detect().request_id is not None, "the log has reached it"


def repair_once(lane: Lane) -> None:
    lane.repair(lane.detect().request_id or 0)


def append_other_content(lane: Lane, offset: int, at: int | None = None) -> None:
    """Append a second content of a quarantined ID, or of the ID at another offset, to its file, as a driver that died
    after a cut log."""
    name, original = next((name, x) for name, x in lane.lines() if x.record.offset == offset)
    other = change_record(original, offset=offset if at is None else at, value=b"other rubbish")
    path = f"{lane.layout.raw_root}/{lane.name}/{name}"
    lane.store().append(path, [encode_append(other)])
