"""Extras: lines of a batch that died after its append count, once, whether or not their records land afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.compaction import expire_window
from tests.integration.events import FIVE_PAST, NOON_MS, event
from tests.integration.extras import (
    accept_loss,
    append_and_die,
    forget_below,
    land,
    produce,
    repair,
    repair_now,
    require_counted,
    sum_up,
)
from tests.integration.kills import Meanwhile, kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, count_certified, encode_line, expire, list_gaps, minutes
from tests.raw_lines import change_record, encode_append

from onceover.fault_points import Step
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition

pytestmark = pytest.mark.stack
DELETED = KafkaPartition("00000000", 0)


def test_appended_and_lost_records_count_by_their_lines(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    append_and_die(lane, range(50, 100))
    expire(lane, 100)
    lane.turn(3)
    assert list_gaps(lane) == [(50, 100, "expired")]
    accept_loss(lane, 50, 100)
    assert list_gaps(lane) == []
    lane.ingest()
    require_counted(lane, range(100))
    assert lane.detect().findings == ()
    assert lane.verify(0)["equal"]
    assert (lane.audit()["differing"], lane.audit()["unaccounted"]) == (0, 0)
    rests_on = lane.explain(0)["certificate_rests_on"]
    assert (rests_on["basis"], sum(end - start for _, _, start, end, _ in rests_on["extras"])) == ("raw", 25)
    assert "25 records among them that had landed nowhere" in lane.explain_text(0)


def test_extra_that_lands_later_counts_once(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    append_and_die(lane, range(50, 60))
    for start in (0, 5):
        assert lane.repair_detected(minutes(start, start + 5), force=True).failed == ()
    assert (lane.aggregates(), count_certified(lane)) == (sum_up(range(60)), 2)
    lane.ingest()
    assert lane.aggregates() != sum_up(range(60)), "the batch counted them once more"
    failed = lane.detect().failed
    assert [{f.kind for f in each.findings} >= {Kind.UNACCOUNTED_BYTES} for each in failed] == [True, True]
    require_counted(lane, range(60))
    assert lane.explain(0)["certificate_rests_on"]["extras"] == []


@pytest.mark.rare
def test_lines_of_a_log_that_the_ledger_forgot_count(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.turn()
    produce(lane, range(50, 100))
    lane.ingest()
    forget_below(lane, 50)
    expire(lane, 50)
    require_counted(lane, range(100))


@pytest.mark.rare
def test_window_waits_for_a_batch_that_may_land_its_extras(lanes: Lanes) -> None:
    lane = land(lanes, 50)
    produce(lane, range(50, 60))

    def repair_meanwhile() -> None:
        repair_now(lane)
        assert lane.aggregates() == sum_up(range(50))
        assert "a batch in flight may still land" in lane.explain_text(0)

    with lane.driver(Meanwhile(Step.APPENDED, repair_meanwhile)) as driver:
        driver.turn()
    lane.ingest()
    require_counted(lane, range(60))


@pytest.mark.rare
def test_late_line_of_an_accepted_loss_counts(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(5))
    lane.turn()
    produce(lane, range(5, 20))
    expire(lane, 10)
    lane.turn(3)
    accept_loss(lane, 5, 10)
    lane.ingest()
    repair(lane)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 12)
    late = replace(change_record(near, offset=7, value=event(7, amount=7)), event_ms=NOON_MS + 7 * 60_000)
    append(lane, 5, encode_append(late))  # by a writer that was thought dead
    assert len(lane.sweep().differing) == 1
    require_counted(lane, [*range(5), 7, *range(10, 20)])


@pytest.mark.rare
def test_extra_with_two_contents_waits_for_a_person(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 4)
    mark_deleted_topic(lane)
    forged = (change_record(near, source=DELETED, offset=1, value=event(4, amount=n)) for n in (100, 200))
    append(lane, 0, encode_append(*forged))
    assert len(lane.sweep().differing) == 1
    ((_, reason),) = lane.repair_detected().failed
    assert "1 ID with two contents under one leader epoch: 00000000-0:1-2" in reason
    (finding,) = (each for each in lane.explain(0)["findings"] if each["kind"] == Kind.FAILED_PROOF)
    assert finding["evidence"]["reason"] == reason
    assert lane.aggregates() == sum_up(range(10))


@pytest.mark.rare
def test_extra_counts_in_one_window_alone(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 4)
    mark_deleted_topic(lane)
    line = replace(near, record=replace(near.record, source=DELETED, offset=1))
    append(lane, 0, encode_append(line))
    append(lane, 5, encode_append(replace(line, event_ms=NOON_MS + 7 * 60_000)))  # as a version would that dates it so
    assert len(lane.sweep().differing) == 2
    ((window, reason),) = lane.repair_detected().failed
    assert (window, "window 2026-03-01T12:00Z counts it already" in reason) == ("2026-03-01T12:05Z", True)
    expected = sum_up(range(10))
    count, total, _ = expected[0.0, "a"]
    assert lane.aggregates() == expected | {(0.0, "a"): (count + 1, total + 4, 4)}  # type: ignore[operator]
    assert lane.repair_detected(minutes(0, 10), by_value=True).failed == ()
    assert count_certified(lane) == 2, "VALUE dates it within the first window"


@pytest.mark.rare
def test_line_of_an_id_that_landed_elsewhere_counts_there_alone(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    append(lane, 5, encode_line(lane, 0, event(6, amount=60)))
    assert len(lane.sweep().differing) == 1
    require_counted(lane, range(10))


def mark_deleted_topic(lane: Lane) -> None:
    """Have the root's marker name a topic that was deleted, under a ledger that was lost."""
    with lane.open() as context:
        stored = context.markers.read_newest()
        assert stored.marker
        origins = {**stored.marker.origins, DELETED: 0}
        context.markers.write_next(stored, replace(stored.marker, origins=origins))


@pytest.mark.rare
def test_accepted_loss_counts_where_raw_has_not_expired(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.land([event(30, amount=1)])
    repair(lane)
    assert count_certified(lane) == 3
    expire_window(lane, FIVE_PAST)
    produce(lane, range(100, 110))
    lane.produce([event(11, amount=200)])
    kill_after(lane, Step.APPENDED)
    expire(lane, 62)
    lane.turn(3)
    assert list_gaps(lane) == [(51, 62, "expired")]
    accept_loss(lane, 51, 62)
    lane.ingest()
    repair(lane)
    counted = sum_up([*range(50), *range(100, 105)])
    assert lane.aggregates() == counted | {(30.0, "a"): (1, 1, 1), (10.0, "a"): (1, 200, 200)}
    assert (list_gaps(lane), lane.detect().failed, count_certified(lane)) == ([], (), 3)


@pytest.mark.rare
def test_lines_of_a_log_never_read_are_named_and_not_counted(lanes: Lanes) -> None:
    """Of a generation and of a Kafka partition that the pipeline never read."""
    lane = lanes()
    produce(lane, range(5))
    lane.ingest()
    own = next(each for _, each in lane.lines())
    for source in ("0badcafe", 0), (own.record.source.generation, 99_999):
        append(lane, 0, encode_append(change_record(own, source=KafkaPartition(*source), offset=1)))
    assert len(lane.repair_detected().confirmed) == 1
    assert lane.aggregates() == sum_up(range(5))
    known = "SELECT kafka_partition, reach FROM onceover.kafka_partition WHERE pipeline = %s"
    assert lane.query(known, [lane.name]) == [{"kafka_partition": 0, "reach": 5}], "no watermark stops"
    explained = lane.explain(0)
    assert {Kind(f["kind"]) for f in explained["ledger"]["findings"]} == {Kind.UNACCOUNTED_BYTES, Kind.STRAY_LINE}
    assert (explained["state"], explained["findings"], lane.detect().judged) == ("certified", [], 0)
    assert lane.verify(0)["differences"] == ["raw: 2 records that no landing accounts for"]
