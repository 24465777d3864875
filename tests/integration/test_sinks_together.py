"""The transactional sink killed at each step while something else goes on as well. What is right is what another client
reads in Kafka's log."""

from __future__ import annotations

import pytest
from tests.integration.cut_logs import land_and_cut
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.kills import MISCOUNTED, TRANSACTIONAL, Killed, KillPoint, Meanwhile, find_kinds, kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, skip_to
from tests.integration.releases import accept_nameless, compute_expected, make_nameless, open_release, release

from onceover.fault_points import RepairStep, Step
from onceover.ledger import repair_requests
from onceover.ledger.drivers import as_driver
from onceover.repair.groups import repair_groups
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]
IN_LEDGER = (Step.BEGUN, Step.APPENDED, Step.INCREMENTED, Step.LANDED)


def require_certified(lane: Lane, windows: int) -> None:
    """Repair what failed; all windows are right, by the log, and certified."""
    repair(lane)
    assert lane.aggregates() == compute_expected(lane)
    assert count_certified(lane) == windows


def test_release_under_kills_counts_once(lanes: Lanes) -> None:
    lane = lanes(more=TRANSACTIONAL)
    lane.land([make_nameless(n, amount=n) if n % 2 else event(n, amount=n) for n in range(10)])
    accept_nameless(lane)
    named = {key: row for key, row in compute_expected(lane).items() if key[1] == "a"}
    for step in IN_LEDGER:
        with open_release(lane) as (ledger, releasing), as_driver(ledger, lane.name, "test") as epoch:
            found = releasing.plan(lane.files().list_quarantine_days(), None)
            assert sum(found.windows.values()) == 5, "what was killed before it landed is still to be released"
            with pytest.raises(Killed):
                releasing.carry_out(epoch, found.ids, "me", "a test", KillPoint(step))
        assert lane.aggregates() == (compute_expected(lane) if step is Step.LANDED else named), step
    assert release(lane).windows == {}, "the last one had landed"
    lane.ingest()
    assert not find_kinds(lane) & MISCOUNTED
    require_certified(lane, 2)


@pytest.mark.parametrize("store", ["kafka", "postgres", "none"])
def test_cutover_and_late_records_under_kills_count_once(lanes: Lanes, store: str) -> None:
    lane = lanes(more=TRANSACTIONAL, offset_store=store)
    lane.land([event(n, amount=n) for n in range(10)])
    assert lane.detect().certified == 2
    lane.produce([event(1, amount=50)])
    kill_after(lane, Step.BEGUN)  # the old contract's last batch
    accept_nameless(lane)
    for n, step in enumerate(Step):
        lane.produce([event(2, amount=60 + n), make_nameless(6, amount=70 + n)])
        kill_after(lane, step)
    lane.ingest()
    assert lane.aggregates() == compute_expected(lane), "all of it late, and counted before any repair"
    assert not find_kinds(lane) & MISCOUNTED
    require_certified(lane, 2)


@pytest.mark.parametrize("store", ["kafka", "postgres"])
def test_hole_under_kills_counts_once(lanes: Lanes, store: str) -> None:
    lane = lanes(more=TRANSACTIONAL, offset_store=store)
    lane.land([event(n, amount=n) for n in range(5)])
    lane.produce([event(n, amount=n) for n in range(10)])
    skip_to(lane, 12)
    lane.turn()
    detection = lane.detect()
    assert len(detection.read_again) == 1
    for step in IN_LEDGER:
        before = lane.aggregates()
        kill_after(lane, step)  # a driver's turn reads what a request wants
        assert (lane.aggregates() == before) == (step is not Step.LANDED), step
    lane.repair(detection.request_id)
    lane.ingest()
    require_certified(lane, 2)


def test_cut_log_under_kills_is_read_again_once(lanes: Lanes, stack: Stack) -> None:
    lane = lanes(more=TRANSACTIONAL)
    land_and_cut(lane, stack)
    for n, step in enumerate((Step.APPENDED, Step.INCREMENTED, Step.LANDED, Step.COMMITTED)):
        lane.produce([event(3, amount=70 + n)])
        kill_after(lane, step)
    lane.ingest()
    held = {(x.record.offset, x.record.value) for _, x in lane.lines()}
    assert {(at, value) for (_, at), (_, value) in lane.log().items()} <= held, "all that the log holds is in raw"
    both = {(0.0, "a"): (4 + 4, 6 + 286, 73), (5.0, "a"): (2, 11, 6)}
    assert lane.aggregates() == both, "what was read before the cut and after it, each once"
    repair(lane)
    assert (lane.aggregates(), count_certified(lane)) == (both, 2)


@pytest.mark.parametrize("at", [RepairStep.CLAIMED, RepairStep.STAGED])
def test_repair_beside_killed_batches_publishes_nothing_stale(lanes: Lanes, at: RepairStep) -> None:
    lane = lanes(more=TRANSACTIONAL)
    lane.produce([event(n, amount=n) for n in range(10)])
    kill_after(lane, Step.APPENDED)
    lane.ingest()
    request_id = lane.detect().request_id or 0

    def ingest_under_kills() -> None:
        for n, step in enumerate(Step):
            lane.produce([event(1, amount=20 + n), event(6, amount=30 + n)])
            kill_after(lane, step)
        lane.ingest()

    beside = Meanwhile(at, ingest_under_kills)
    with lane.open() as context:
        request = repair_requests.read_request(context.ledger, lane.name, request_id)
        repair_groups(lane.spark, context, context.read_registration(), request, beside)
    assert beside.has_fired
    assert lane.aggregates() == compute_expected(lane), "as the batches left them, or as the repair did with all"
    require_certified(lane, 2)
