"""Adoptions that meet a batch in flight, an accepted loss, a file without a window, or two contents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.orphans import Meanwhile, accept_loss, append_and_die, land, produce, repair, repair_now, sum_up
from tests.integration.planted_failures import append, count_certified, expire, list_gaps
from tests.raw_lines import change_record, encode_append

from onceover.errors import UsageError
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition
from onceover.model.window import from_ms

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]


@pytest.mark.largest
@pytest.mark.rare
def test_file_without_a_window_is_given_one_and_adopted(lanes: Lanes) -> None:
    lane = land(lanes, 5)
    append_and_die(lane, range(5, 10))
    expire(lane, 10)
    with lane.driver() as driver:
        driver.turn()
    repair(lane)
    lane.ingest()
    repair(lane)
    assert (list_gaps(lane), lane.aggregates(), count_certified(lane)) == ([], sum_up(range(10)), 2)


@pytest.mark.largest
@pytest.mark.rare
def test_record_adopted_while_its_batch_lands_counts_once(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    produce(lane, range(50, 60))

    def expire_and_repair() -> None:
        expire(lane, 60)
        repair_now(lane)
        assert lane.aggregates() == sum_up(range(60)), "a batch that may still die is all that would land them"

    with lane.driver(Meanwhile(expire_and_repair)) as driver:
        driver.turn()
    assert lane.aggregates() != sum_up(range(60)), "the batch counted them once more"
    lane.ingest()
    repair(lane)
    assert (lane.aggregates(), count_certified(lane)) == (sum_up(range(60)), 2)


@pytest.mark.largest
@pytest.mark.rare
def test_late_line_of_an_accepted_loss_counts_and_is_not_lost(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(5))
    with lane.driver() as driver:
        driver.turn()
    produce(lane, range(5, 20))
    expire(lane, 10)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    accept_loss(lane, 5, 10)
    lane.ingest()
    repair(lane)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 12)
    late = replace(change_record(near, offset=7, value=event(7, amount=7)), event_ms=NOON_MS + 7 * 60_000)
    append(lane, 5, encode_append(late))  # by a writer that was thought dead
    assert len(lane.sweep().differing) == 1
    repair(lane)
    assert lane.aggregates() == sum_up([*range(5), 7, *range(10, 20)])
    lost = lane.explain(5)["ledger"]["losses"]
    assert [(each["start_offset"], each["end_offset"]) for each in lost] == [(5, 7), (8, 10)]
    assert count_certified(lane) == 2


@pytest.mark.largest
@pytest.mark.rare
def test_open_window_without_orphans_is_searched_once(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(5))
    with lane.driver() as driver:
        driver.turn()
    (near,) = (x for _, x in lane.lines() if x.record.offset == 4)
    elsewhere = replace(change_record(near, offset=7, value=event(7, amount=7)), event_ms=NOON_MS + 7 * 60_000)
    append(lane, 0, b"\na torn tail\n" + encode_append(elsewhere))
    produce(lane, range(5, 15))
    expire(lane, 10)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    with pytest.raises(UsageError, match="in the file of window 2026-03-01T12:00Z"):
        accept_loss(lane, 5, 10)
    searched = lane.detect()
    assert [f.window.start for f in searched.failed] == [from_ms(NOON_MS)]
    assert lane.repair(searched.request_id or 0).failed == ()
    again = lane.detect()
    assert (again.request_id, again.failed, list_gaps(lane)) == (None, (), [(5, 10, "expired")])
    accept_loss(lane, 5, 10)
    assert list_gaps(lane) == [], "the line belongs to another window's file, and is none of its records"


@pytest.mark.largest
@pytest.mark.rare
def test_orphan_with_two_contents_waits_for_a_decision(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 4)
    source = KafkaPartition("00000000", 0)  # of a topic that was deleted, under a ledger that was lost
    with lane.open() as context:
        stored = context.markers.read_newest()
        assert stored.marker
        origins = {**stored.marker.origins, source: 0}
        context.markers.write_next(stored, replace(stored.marker, origins=origins))
    several = (change_record(near, source=source, offset=1, value=event(4, amount=n)) for n in (100, 200))
    append(lane, 0, encode_append(*several))
    assert len(lane.sweep().differing) == 1
    request_id = lane.detect().request_id
    ((_, reason),) = lane.repair(request_id or 0).failed
    assert "1 ID has more than one content" in reason
    (finding,) = (each for each in lane.explain(0)["findings"] if each["kind"] == Kind.CONFLICT)
    assert "00000000-00000-0000000000000000001" in str(finding["evidence"])
    assert lane.aggregates() == sum_up(range(10))
