"""Records released from quarantine on the real stack: landed once, counted once, proved after any failure."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.integration.cutover import assert_proved
from tests.integration.events import count_minutes, event, moment
from tests.integration.extras import accept_loss, repair
from tests.integration.kills import Killed, KillPoint, kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, expire, lose_ledger, minutes, replay
from tests.integration.program import as_json, run, succeed
from tests.integration.releases import (
    accept_nameless,
    compute_expected,
    count_quarantined,
    look,
    make_nameless,
    open_release,
    produce_mixed,
    produce_mixed_in_one,
    release,
)
from tests.integration.test_ledger_rebuild import certify
from tests.raw_lines import change_record, encode_append

from onceover.errors import BusyError, FencedError
from onceover.fault_points import FaultPoint, Step
from onceover.ledger.drivers import as_driver
from onceover.model.offsets import OffsetRange
from onceover.quarantine.release_job import CONFLICT, EXPIRED, UNACCOUNTED

pytestmark = pytest.mark.stack


@pytest.mark.rare
def test_release_lands_once_and_is_certified_without_repair(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    produce_mixed(lane, 0, 30)
    lane.ingest()
    assert lane.detect().certified == 6
    assert count_quarantined(lane) == (24, 0)
    assert (release(lane).windows, count_quarantined(lane)) == ({}, (24, 0)), "the contract has not changed"
    accept_nameless(lane)
    produce_mixed(lane, 30, 40)
    seen = look(lane)
    assert (sum(seen.windows.values()), len(seen.windows)) == (18, 6)
    assert list(seen.left.values()) == [6], seen.left
    assert count_quarantined(lane) == (24, 0)

    assert release(lane, most=7) == seen
    assert count_quarantined(lane) == (6, 18)
    released = [line for _, line in lane.lines() if line.contract.startswith("R2-")]
    assert [line.columns and line.columns[0] for line in released] == [b"none"] * 18
    lane.ingest()
    detection = lane.detect()
    assert (detection.failed, detection.findings, detection.certified) == ((), (), 8)
    assert lane.aggregates() == compute_expected(lane)
    assert_proved(lane, 0, 25, 35)
    assert lane.audit(minutes(0, 10))["equal"]
    again = release(lane)
    assert (again.windows, again.ids, sum(again.left.values())) == ({}, (), 8)
    explanation = lane.explain_text(0)
    assert 'released from quarantine by me ("a test")' in explanation


@pytest.mark.rare
def test_release_that_dies_after_its_append_blocks_no_window(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([make_nameless(n, n) for n in range(3)])
    accept_nameless(lane)
    with open_release(lane) as (ledger, run), as_driver(ledger, lane.name, "test") as epoch:
        found = run.plan(lane.files().list_quarantine_days(), None)
        with pytest.raises(Killed):
            run.carry_out(epoch, found.ids, "me", "a test", KillPoint(Step.APPENDED))
    assert len([name for name, _ in lane.lines() if "quarantine" not in name]) == 3, "lines of no landing"
    repair(lane)
    assert (lane.aggregates(), count_certified(lane)) == ({}, 1)
    assert "release" in lane.explain_text(0)
    release(lane)
    repair(lane)
    assert lane.aggregates() == compute_expected(lane) != {}
    assert count_certified(lane) == 1


@pytest.mark.largest
def test_replay_of_released_records_is_quarantined_again(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=11)
    produce_mixed(lane, 0, 20)
    replay(lane)
    lane.ingest()
    accept_nameless(lane)
    release(lane, most=5, reason="missing field")
    assert count_quarantined(lane) == (4, 12)
    lane.set_offsets({0: 0, 1: 3})
    produce_mixed(lane, 20, 25)
    lane.ingest()
    assert count_quarantined(lane) == (4, 12), "those are out for good"
    assert lane.aggregates() != compute_expected(lane)
    planned = {str(one.window): one for one in lane.plan(minutes(0, 25))}
    detection = lane.detect()
    assert {str(f.kind) for failed in detection.failed for f in failed.findings} >= {"duplicated"}
    done = lane.repair(detection.request_id)
    assert (len(done.confirmed), done.failed) == (len(detection.failed), ())
    assert lane.aggregates() == compute_expected(lane)
    for window, one in planned.items():
        if one.distinct is not None:
            assert one.distinct == count_records(lane, window), window
    assert_proved(lane, 0, 15)

    accept_nameless(lane)  # nothing has changed
    lane.toml.write_text(lane.toml.read_text().replace("'none'", "'later'"))
    accept_nameless(lane)
    lane.land([make_nameless(26)])
    again = lane.detect(minutes(0, 30), force=True)
    assert lane.repair(again.request_id).failed == ()
    third = {**compute_expected(lane), (25.0, "later"): (1, 1, 1)}
    del third[(25.0, "none")]
    assert lane.aggregates() == third, "who was released by the second contract keeps it"
    assert_proved(lane, 0, 15, 25)


def count_records(lane: Lane, window: str) -> int:
    found = lane.explain(count_minutes(datetime.fromisoformat(window)))
    return int(found["ledger"]["window"]["records"])


@pytest.mark.largest
def test_unprovable_quarantine_records_stay_there(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(1), make_nameless(2), make_nameless(3), make_nameless(8), event(9), event(16)])
    lane.detect()
    day = next(iter(lane.files().list_quarantine_days()))
    (known,) = (found for _, found in lane.lines() if found.record.offset == 1)
    other = change_record(known, value=make_nameless(2, 5))
    unlanded = change_record(known, offset=77)
    path = lane.layout.quarantine_file(day)
    lane.store().append(path, [encode_append(other, unlanded)])
    before = lane.raw()
    lane.query(
        'UPDATE onceover."window" SET expired_at = now() WHERE pipeline = %s AND window_start = %s',
        [lane.name, moment(5)],
    )
    accept_nameless(lane)
    found = release(lane)
    assert found.left == {CONFLICT: 1, UNACCOUNTED: 1, EXPIRED: 1}
    assert sum(found.windows.values()) == 1
    after = lane.raw()
    assert all(after[name].startswith(content) for name, content in before.items())
    assert len(set(after) - set(before)) == 0


@pytest.mark.largest
def test_quarantined_record_of_an_accepted_loss_is_released(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(1), make_nameless(2)])
    right = compute_expected(lane)
    kill_after(lane, Step.APPENDED)
    expire(lane, 2)
    lane.turn()
    accept_loss(lane, 0, 2)
    accept_nameless(lane)
    assert sum(release(lane).windows.values()) == 1
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == right
    assert_proved(lane, 0)


@pytest.mark.largest
def test_release_of_an_id_happens_once_and_not_beside_an_ingest(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(1), make_nameless(2), make_nameless(3)])
    accept_nameless(lane)
    with lane.driver():
        with pytest.raises(BusyError):
            release(lane)
        assert sum(look(lane).windows.values()) == 2, "to look is free"
    with open_release(lane) as (ledger, run), as_driver(ledger, lane.name, "test") as epoch:
        ids = run.plan(lane.files().list_quarantine_days(), None).ids
        assert [(r.start, r.end) for r in ids] == [(1, 3)]
        run.carry_out(epoch, [OffsetRange(ids[0].source, 2, 3)], "me", "a test", FaultPoint())
        with pytest.raises(FencedError, match="has released some of these"):
            run.carry_out(epoch, ids, "me", "a test", FaultPoint())
    assert count_quarantined(lane) == (1, 1)
    release(lane)
    detection = lane.detect()
    lane.repair(detection.request_id)
    assert lane.aggregates() == compute_expected(lane)
    assert_proved(lane, 0)


@pytest.mark.largest
def test_release_command_reports_planned_and_landed_records(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(1), make_nameless(2), make_nameless(8), b"{"])
    accept_nameless(lane)
    assert (run("quarantine", lane.name, "release").returncode, count_quarantined(lane)) == (2, (3, 0)), (
        "no reason was given"
    )
    planned = as_json("quarantine", lane.name, "release", "--dry-run")
    assert (planned["records"], planned["batches"], planned["version"], count_quarantined(lane)) == (2, 0, 2, (3, 0))
    assert planned["windows"] == [
        {"window": "2026-03-01T12:00Z", "records": 1}, {"window": "2026-03-01T12:05Z", "records": 1},
    ]  # fmt: skip
    assert list(planned["left"].values()) == [1]
    other_day = as_json("quarantine", lane.name, "release", "--dry-run", "--day", "1999-01-01")
    assert (other_day["records"], other_day["left"]) == (0, {})
    said = succeed("quarantine", lane.name, "release", "--reason", "missing field kind", "--why", "INC-42")
    assert "2 records landed in 2 windows" in said
    assert count_quarantined(lane) == (1, 2)
    lane.detect()
    assert lane.aggregates() == compute_expected(lane)


@pytest.mark.largest
def test_lost_ledger_is_rebuilt_with_its_releases(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=11)
    produce_mixed(lane, 0, 20)
    replay(lane)
    lane.ingest()
    accept_nameless(lane)
    release(lane, most=5)
    before = certify(lane)
    assert (len(before), count_quarantined(lane)) == (4, (4, 12))
    lose_ledger()
    rebuilt = as_json("ledger", "rebuild", lane.name)
    assert (rebuilt["windows"], rebuilt["records"], rebuilt["holes"]) == (4, 40, [])
    assert count_quarantined(lane) == (4, 12), "and none of them is released again"
    assert release(lane).windows == {}
    assert certify(lane) == before
    assert lane.aggregates() == compute_expected(lane)
    assert_proved(lane, 0, 15)


@pytest.mark.largest
def test_rebuilt_ledger_releases_once_and_replays_nothing(lanes: Lanes) -> None:
    lane = lanes(most=7)
    produce_mixed_in_one(lane)
    lane.ingest()
    lose_ledger()
    assert lane.rebuild().written.records == 20
    accept_nameless(lane)
    for released in (6, 0):
        before = lane.raw()
        lane.set_offsets({0: 3})
        lane.ingest()
        assert lane.raw() == before, "another version may have read what landed: nothing of it is read again"
        assert sum(map(len, release(lane).ids)) == released
        certify(lane)
        assert lane.aggregates() == compute_expected(lane)
    assert_proved(lane, 0, 15)
