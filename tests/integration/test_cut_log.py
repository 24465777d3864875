"""Kafka's log cut and grown again on a real broker: what landed and what the log holds now both count."""

from __future__ import annotations

import pytest
from tests.integration.cut_logs import cut_log, damage_batch, land_and_cut, produce_compressed
from tests.integration.events import NOON_MS, event
from tests.integration.extras import repair
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, expire, lose_ledger, skip_to
from tests.integration.program import succeed

from onceover.fault_points import Step
from onceover.ledger.frontiers import read_holes
from onceover.model.finding_kinds import Kind
from onceover.offset_stores.admin import inspect_offsets
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
BOTH = {(0.0, "a"): (5, 79, 73), (5.0, "a"): (2, 11, 6), (10.0, "a"): (3, 246, 83)}


def land_cut_and_grow(lane: Lane, stack: Stack) -> None:
    """Land six records in two windows, cut the log to three, and let others take their offsets."""
    land_and_cut(lane, stack)
    lane.produce([event(n, amount=70 + n) for n in (3, 11, 12, 13)])


def assert_both_count(lane: Lane) -> None:
    held = {(x.record.offset, x.record.value) for _, x in lane.lines()}
    assert {(at, value) for (_, at), (_, value) in lane.log().items()} <= held, "all that the log holds is in raw"
    assert (lane.aggregates(), count_certified(lane)) == (BOTH, 3)
    assert all(lane.verify(at)["equal"] for at in (0, 5, 10))
    assert lane.audit()["equal"]
    assert lane.detect().judged == 0


def test_cut_log_is_read_again_and_both_records_count(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    (finding,) = lane.detect().findings
    assert (finding.kind, [x[2] for x in finding.evidence["cut_from"]]) == (Kind.TRUNCATED, [3])  # type: ignore[attr-defined]
    assert "with other records than landed" in lane.explain_text(0)
    lane.ingest()
    repair(lane)
    assert_both_count(lane)


def test_offsets_tell_of_a_cut_or_a_hole_before_ingest_runs(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_and_cut(lane, stack)
    with lane.open() as context:
        seen = inspect_offsets(context)
    assert "Kafka partition 0 ends at 3, before the stored offset 6: its log was cut" in (seen.trouble or "")
    lane.ingest()
    with lane.open() as context:
        assert inspect_offsets(context).trouble is None
    lane.produce([event(n) for n in range(3)])
    skip_to(lane, 5)
    with lane.open() as context:
        seen = inspect_offsets(context)
    assert "the stored offset 5 of Kafka partition 0 is 2 beyond 3, up to which it was read" in (seen.trouble or "")


def test_line_of_a_dead_batch_counts_beside_the_new_record(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(3)])
    repair(lane)
    lane.produce([event(n, amount=n) for n in (3, 5, 6)])
    kill_after(lane, Step.APPENDED)
    cut_log(stack, lane.topic, 3)
    lane.land([event(n, amount=70 + n) for n in (3, 11, 12, 13)])
    repair(lane)
    assert_both_count(lane)


def test_record_that_is_written_again_after_a_cut_counts_once(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(3)])
    lane.land([event(n, amount=n) for n in (3, 5, 6)], timestamp=NOON_MS)
    assert lane.detect().certified == 2
    cut_log(stack, lane.topic, 3)
    with lane.driver() as driver:
        driver.turn()
        lane.produce([event(3, amount=3)], timestamp=NOON_MS)
        lane.produce([event(n, amount=n) for n in (5, 6)], timestamp=NOON_MS)
        driver.turn()
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 6, 3), (5.0, "a"): (2, 11, 6)}
    assert count_certified(lane) == 2
    (first, second) = (each.why for each in lane.compact())
    assert (first, second) == (
        "1 record landed under two leader epochs, and a compacted file has one",
        "2 records landed under two leader epochs, and a compacted file has one",
    )


def test_log_cut_while_the_ledger_was_lost_is_read_again(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lose_ledger()
    assert lane.rebuild().written.records == 6, "raw does not know that offsets 3, 4 and 5 have other records now"
    (finding,) = lane.detect().findings
    assert [x[2] for x in finding.evidence["cut_from"]] == [3], "as the epochs of raw's lines say"  # type: ignore[attr-defined]
    lane.ingest()
    repair(lane)
    assert_both_count(lane)


def test_ledger_that_is_lost_after_a_cut_is_rebuilt_with_both(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    lane.ingest()
    repair(lane)
    lose_ledger()
    lane.rebuild()
    repair(lane)
    lane.ingest()
    repair(lane)
    assert_both_count(lane)


def test_what_expires_after_a_cut_is_a_loss_to_accept(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_cut_and_grow(lane, stack)
    assert lane.detect().judged == 0, "what landed counts as before"
    expire(lane, 5)
    lane.turn()
    with lane.ledger() as ledger:
        (hole,) = read_holes(ledger, lane.name)
    assert (hole.start, hole.end) == (3, 5)
    accept = ["accept-loss", lane.name, str(hole), "--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:15Z"]
    succeed(*accept, "--reason", "INC-9: an unclean election")
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 6, 3), (5.0, "a"): (2, 11, 6), (10.0, "a"): (2, 165, 83)}
    assert count_certified(lane) == 3
    assert "INC-9" in lane.explain_text(10)
    assert lane.audit()["equal"]


@pytest.mark.largest
def test_record_that_nothing_reads_stops_no_cut_log(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_and_cut(lane, stack)
    lane.produce([event(11, amount=81)])
    produce_compressed(lane.topic, 1)
    lane.produce([event(n, amount=70 + n) for n in (12, 13)])
    damage_batch(stack, lane.topic)
    lane.turn(4)
    where = f"{lane.source()}:4-5"
    accept = ["accept-loss", lane.name, where, "--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:15Z"]
    succeed(*accept, "--unreadable", "--reason", "INC-7: damaged on disk")
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 6, 3), (5.0, "a"): (2, 11, 6), (10.0, "a"): (3, 246, 83)}, (
        "under offset 4 the record counts that landed"
    )
    assert count_certified(lane) == 3
    assert "that Kafka holds and no reader gets" in lane.explain_text(0)
    assert lane.audit()["equal"]
    assert lane.detect().judged == 0
