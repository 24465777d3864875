"""Kafka's compaction on a real broker: less is read again than landed or was appended; every window is certified."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, land_without_commit

from onceover.fault_points import Step
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.largest]
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01", "retention.ms": "-1"}
KEYS = 4


def produce_all_keys(lane: Lane, first: int, minutes: Sequence[float] = (0,) * KEYS) -> None:
    """Produce a record of each key, each in a segment of its own: the broker then drops earlier ones of these keys."""
    now_ms = int(time.time() * 1000)
    for n, minute in enumerate(minutes):
        at = first + n
        lane.produce([event(minute, amount=at)], key=b"k%d" % n, timestamp=now_ms + at * 1000)


def wait_for_compaction(lane: Lane) -> None:
    wait_for(lambda: not any(offset < KEYS - 1 for _, offset in lane.log()), 90, "the broker to compact")


def land_from(lane: Lane, start: int) -> None:
    """Land one batch, read from `start`, whose offsets the store never gets."""
    with lane.driver() as driver, pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver._positions, "find", lambda facts: {0: start})
        land_without_commit(driver)


def list_landed(lane: Lane) -> list[tuple[int, int, int]]:
    rows = lane.query(
        "SELECT r.start_offset, r.end_offset, r.records FROM onceover.batch_range r JOIN onceover.batch b "
        "USING (batch_id) WHERE b.pipeline = %s AND b.state = 'landed' ORDER BY b.batch_id",
        [lane.name],
    )
    return [tuple(row.values()) for row in rows]


def require_each_record_once(lane: Lane) -> None:
    """Require that a repair counts every record that was produced once, and that nothing is left to repair."""
    assert len(lane.repair_detected().confirmed) == 1
    produced = range(max(x.record.offset for _, x in lane.lines()) + 1)
    assert lane.aggregates() == {(0.0, "a"): (len(produced), sum(produced), max(produced))}
    assert (lane.detect().failed, count_certified(lane)) == ((), 1)


def test_replay_of_a_compacted_log_beyond_its_landing_is_proved(lanes: Lanes) -> None:
    lane = lanes(topic_config=COMPACTED)
    produce_all_keys(lane, 0)
    with lane.driver() as driver:
        land_without_commit(driver)
    produce_all_keys(lane, KEYS)
    wait_for_compaction(lane)
    lane.ingest()
    (first, *replays) = list_landed(lane)
    assert first == (0, KEYS, KEYS)
    assert [(start, end) for start, end, _ in replays] == [(0, KEYS), (KEYS, 2 * KEYS)], "cut where the first one ended"
    assert replays[0][2] < KEYS, "the broker no longer has all of what landed"
    require_each_record_once(lane)


def test_replay_across_adjacent_landings_is_proved_by_both(lanes: Lanes) -> None:
    lane = lanes(topic_config=COMPACTED)
    produce_all_keys(lane, 0)
    with lane.driver() as driver:
        land_without_commit(driver)
    produce_all_keys(lane, KEYS)
    land_from(lane, KEYS)
    produce_all_keys(lane, 2 * KEYS)
    wait_for_compaction(lane)
    lane.ingest()
    assert list_landed(lane)[2][:2] == (0, 2 * KEYS), "one range across both"
    require_each_record_once(lane)


def test_records_kafka_drops_before_landing_are_spare(lanes: Lanes) -> None:
    lane = lanes(topic_config=COMPACTED)
    produce_all_keys(lane, 0, minutes=(5, 0, 5, 0))
    kill_after(lane, Step.APPENDED)
    produce_all_keys(lane, KEYS)
    wait_for_compaction(lane)
    lane.ingest()
    assert list_landed(lane) == [(0, 2 * KEYS, len(lane.log()))]
    assert not {0, 2} & {offset for _, offset in lane.log()}, "no batch has landed in window 5"
    repair(lane)
    landed = {offset for _, offset in lane.log()}
    assert lane.aggregates() == {(0.0, "a"): (len(landed), sum(landed), max(landed))}
    assert (lane.detect().failed, count_certified(lane)) == ((), 2)
    assert all(lane.verify(minute)["equal"] for minute in (0, 5))
    assert lane.audit()["equal"]
    assert [each.why for each in lane.compact()] == [None]
