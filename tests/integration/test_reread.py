"""Lines that raw has lost and Kafka still has: read again for their window alone, and proved."""

from __future__ import annotations

import pytest
from tests.integration.compaction import expire_text
from tests.integration.events import event, moment
from tests.integration.extras import accept_gap
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import backdate, count_certified, expire, lose_ledger, minutes, spoil
from tests.integration.program import as_json, run, succeed

from onceover.config.endpoints import address
from onceover.errors import BusyError, UsageError
from onceover.ledger import batches, repair_requests
from onceover.ledger.drivers import Heartbeat

pytestmark = pytest.mark.stack
RIGHT = {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}


def make_certified(lanes: Lanes, most: int = 100_000) -> Lane:
    """Make a lane of three certified windows of five records each."""
    lane = lanes(most=most)
    lane.land([event(n, amount=n) for n in range(15)])
    assert lane.detect().certified == 3
    return lane


def path_at(lane: Lane, minute: int) -> str:
    return lane.window_file(minute)


def truncate(lane: Lane, minute: int, keep: int) -> None:
    """Cut the window file behind the ledger's back, as a lost replica does."""
    content = lane.read(path_at(lane, minute))
    lane.overwrite(path_at(lane, minute), content[:keep])


def count_lines(lane: Lane) -> dict[str, int]:
    names = [name for name, _ in lane.lines()]
    return {name: names.count(name) for name in sorted(set(names))}


def require_all_certified(lane: Lane) -> None:
    assert lane.aggregates() == RIGHT
    assert (lane.sweep().differing, lane.detect().failed, count_certified(lane)) == ((), (), 3)
    assert lane.verify(5)["equal"]


def test_truncated_window_is_read_again_from_kafka(lanes: Lanes) -> None:
    lane = make_certified(lanes)
    truncate(lane, 5, 150)
    assert len(lane.sweep().differing) == 1
    detection = lane.detect()
    ((_, why),) = lane.repair(detection.request_id).failed
    assert ("0:0-15;" in why, "fewer are never published" in why) == (True, True), why
    assert lane.aggregates() == RIGHT
    assert not lane.verify(5)["equal"]
    assert f"onceover reread {lane.name} 2026-03-01T12:05Z" in lane.explain_text(5)

    with pytest.raises(UsageError, match="is unknown or has expired"):
        lane.reread(30)
    before = count_lines(lane)
    plan, done = lane.reread(5)
    assert (plan.gone, plan.damage, done and done.confirmed) == ((), None, ("2026-03-01T12:05Z",))
    after = count_lines(lane)
    assert {name for name in after if after[name] != before.get(name)} == {"2026-03-01/1205.log"}, "no other window"
    require_all_certified(lane)


@pytest.mark.rare
def test_only_landings_that_raw_lacks_are_read_again(lanes: Lanes) -> None:
    lane = make_certified(lanes, most=2)
    content = lane.read(path_at(lane, 5))
    truncate(lane, 5, content.rindex(b"\n\n") + 1)
    plan, done = lane.reread(5)
    (again,) = plan.held
    assert (plan.records, len(again.offsets)) == (1, 2) or plan.records == 2
    assert done is not None
    assert len(done.confirmed) == 1
    require_all_certified(lane)


@pytest.mark.largest
def test_blocked_window_without_a_file_is_read_again(lanes: Lanes) -> None:
    lane = make_certified(lanes)
    lane.store().remove(path_at(lane, 5))
    lane.sweep()
    for _ in range(3):
        lane.repair_detected()
    assert lane.explain(5)["state"] == "blocked"
    assert f"onceover reread {lane.name} 2026-03-01T12:05Z" in lane.explain_text(5)
    shown = as_json("reread", lane.name, "2026-03-01T12:05Z", "--dry-run")
    assert (shown["lacking_records"], len(shown["read_again"]), shown["request_id"]) == (5, 1, None)
    said = succeed("reread", lane.name, "2026-03-01T12:05Z", "--reason", "a host lost its power")
    assert "window 2026-03-01T12:05Z is repaired and certified" in said
    require_all_certified(lane)
    succeed("reread", lane.name, "2026-03-01T12:05Z", "--reason", "twice is once")
    require_all_certified(lane)


@pytest.mark.rare
def test_unreadable_file_is_kept_and_replaced(lanes: Lanes) -> None:
    lane = make_certified(lanes)
    spoil(lane, path_at(lane, 5))
    with lane.driver() as driver, Heartbeat(address("postgres"), driver._epoch), pytest.raises(BusyError):
        lane.reread(5)
    plan, done = lane.reread(5)
    assert (plan.records, done and done.confirmed) == (5, ("2026-03-01T12:05Z",))
    kept = lane.hdfs().list(f"{lane.layout.raw_root}/{lane.name}/damaged/2026-03-01")
    assert [name.rpartition(".")[0] for name in kept] == ["1205.log"]
    assert lane.aggregates() == RIGHT
    assert (lane.sweep().differing, lane.detect().failed) == ((), ())
    waiting = f"{lane.layout.damaged(path_at(lane, 5))}.1.readable"
    lane.hdfs().rename(path_at(lane, 5), waiting)  # as a reread leaves it that is killed before the last step
    expire(lane, 15)
    plan, done = lane.reread(5)
    assert (plan.lacks_nothing, done and done.confirmed) == (True, ("2026-03-01T12:05Z",))
    require_all_certified(lane)


@pytest.mark.rare
def test_records_gone_from_raw_and_kafka_are_named(lanes: Lanes) -> None:
    lane = make_certified(lanes, most=5)
    truncate(lane, 5, 0)
    expire(lane, 7)
    plan, done = lane.reread(5)
    assert [(gone.start, gone.end) for gone in plan.gone] == [(5, 7)]
    assert [(again.offsets.start, again.offsets.end) for again in plan.held] == [(7, 10)]
    assert done is not None
    ((_, why),) = done.failed
    assert "raw holds 3 of 5" in why
    assert lane.aggregates() == RIGHT, "the last certificate's rows stay"
    expire(lane, 10)
    assert lane.reread(5)[1] is None
    refused = run("reread", lane.name, "2026-03-01T12:05Z", "--reason", "a host lost its power")
    assert refused.returncode == 1
    assert "Bring the window file back" in refused.stdout
    assert f"onceover retention {lane.name} --adopt-missing" in refused.stdout
    assert "1 window declared expired" in succeed("retention", lane.name, "--adopt-missing", "--reason", "no backup")
    assert [lane.explain(at)["state"] for at in (0, 5, 10)] == ["certified", "expired", "certified"]
    assert (lane.aggregates(), lane.detect().failed, lane.sweep().differing) == (RIGHT, (), ())
    lose_ledger()
    assert lane.rebuild().written.expired == 1
    accept_gap(lane, minutes(5, 10))
    lane.ingest()
    lane.repair_detected()
    assert [lane.explain(at)["state"] for at in (0, 5, 10)] == ["certified", "expired", "certified"]
    assert lane.aggregates() == RIGHT, "the rows of five records, of which raw holds three"


@pytest.mark.largest
def test_lost_compacted_file_is_replaced_by_text_from_kafka(lanes: Lanes) -> None:
    lane = make_certified(lanes)
    backdate(lane)
    made = {one.due.window_start: one.due for one in lane.compact()}
    expire_text(lane)
    start = moment(5)
    lane.store().remove(lane.layout.compacted_file(start, made[start].digest))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair_requests, "create_request", interrupt)
        with pytest.raises(KeyboardInterrupt):
            lane.reread(5)
    assert [each.window_start for each in lane.sweep().differing] == [start], "killed halfway, nothing is forgotten"
    assert lane.detect().certified == 0
    plan, done = lane.reread(5)
    assert plan.compacted_is_lost
    assert (plan.gone, done and done.confirmed) == ((), ("2026-03-01T12:05Z",))
    require_all_certified(lane)


@pytest.mark.rare
def test_running_driver_appends_what_a_reread_requests(lanes: Lanes) -> None:
    lane = make_certified(lanes)
    truncate(lane, 5, 10)
    with lane.driver() as driver, Heartbeat(address("postgres"), driver._epoch):
        batches.begin(driver._connection, driver._epoch, 1, [], None)
        _, done = lane.reread(5)
        assert done is not None
        assert not done.confirmed, "it waits for the live driver and gives up"
        assert [window for window, _ in done.failed] == ["2026-03-01T12:05Z"], "despite the batch in flight"
        driver.turn()
    assert len(lane.repair_detected(minutes(5, 10)).confirmed) == 1
    require_all_certified(lane)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
