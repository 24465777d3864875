"""Records that only raw holds: found by a repair, adopted, and certified with all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.other_ledger import copy_ledger, make_ledger
from tests.integration.planted_failures import append, count_certified, expire, fail, list_gaps, minutes
from tests.integration.program import run

from onceover.detection import holes
from onceover.errors import TransientError, UsageError
from onceover.fault_points import AnyStep, FaultPoint, Step
from onceover.ledger import frontiers, repair_requests
from onceover.ledger.root import RootRefusedError
from onceover.model import line
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, parse_range
from onceover.model.window import from_ms

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]


def repair(lane: Lane) -> None:
    """Detect and repair, as the schedule does, until nothing is requested."""
    for _ in range(4):
        request_id = lane.detect().request_id
        if request_id is None:
            return
        assert lane.repair(request_id).failed == ()
    raise AssertionError("each detection requests one more repair")


def sum_up(produced: Iterable[int]) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Return what the aggregates have to be for these events, of the minute n % 10 and the amount n."""
    windows: dict[float, list[int]] = {}
    for n in produced:
        windows.setdefault(float(n % 10 // 5 * 5), []).append(n)
    return {(start, "a"): (len(ns), sum(ns), max(ns)) for start, ns in windows.items()}


def produce(lane: Lane, numbers: Iterable[int]) -> None:
    lane.produce([event(n % 10, amount=n) for n in numbers])


class Death(FaultPoint):
    """A step after which the driver fails, as if it was killed there."""

    def stop_after(self, step: AnyStep) -> None:
        if step is self.step:
            fail()


def die_after(lane: Lane, step: Step) -> None:
    with lane.driver(Death(step)) as driver, pytest.raises(TransientError):
        driver.turn()


class Meanwhile(FaultPoint):
    """Something that happens once records were appended, before the driver goes on."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(Step.APPENDED)
        self.action = action

    def stop_after(self, step: AnyStep) -> None:
        if step is self.step:
            self.action()


def repair_now(lane: Lane) -> None:
    """Repair both windows, without the detection that would wait for the batch in flight."""
    with lane.ledger() as ledger:
        windows = {from_ms(NOON_MS + minute * 60_000): () for minute in (0, 5)}
        request_id = repair_requests.create_request(ledger, lane.name, "test", "a test", windows)
    assert lane.repair(request_id).failed == ()


def forget_below(lane: Lane, offset: int) -> None:
    """Make the ledger one that never knew the offsets below: lost, and begun again by an ingest that went on there."""
    of_batches = "SELECT batch_id FROM onceover.batch_range JOIN onceover.batch USING (batch_id) " \
        "WHERE pipeline = %s AND end_offset <= %s"  # fmt: skip
    with lane.ledger() as ledger, ledger.transaction():
        key = [lane.name, offset]
        ledger.execute(
            "DELETE FROM onceover.landing_part WHERE landing_id IN "
            f"(SELECT landing_id FROM onceover.landing WHERE batch_id IN ({of_batches}))", key,
        )  # fmt: skip
        ledger.execute(f"DELETE FROM onceover.landing WHERE batch_id IN ({of_batches})", key)
        ledger.execute(f"DELETE FROM onceover.batch_range WHERE batch_id IN ({of_batches})", key)
        ledger.execute("UPDATE onceover.kafka_partition SET origin = %s WHERE pipeline = %s", [offset, lane.name])


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
    assert "25 records adopted from raw at" in lane.explain_text(0)


def test_appended_and_expired_records_are_adopted_not_lost(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    with lane.driver() as driver:
        driver.turn()
    produce(lane, range(50, 100))
    die_after(lane, Step.APPENDED)
    expire(lane, 100)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    assert list_gaps(lane) == [(50, 100, "expired")]
    with lane.open() as context:
        (generation,) = frontiers.list_generations(context.ledger, lane.name)
        lost = parse_range(f"{generation}-0:50-100")
        with pytest.raises(UsageError, match="raw holds its record, in the file of window 2026-03-01T12:00Z"):
            holes.accept_loss(context, lost, minutes(0, 10), "test", "gone")
    repair(lane)
    assert list_gaps(lane) == []
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up(range(100))
    assert count_certified(lane) == 2


@pytest.mark.rare
def test_pending_record_that_expires_is_adopted(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.ingest()
    repair(lane)
    produce(lane, range(50, 60))
    die_after(lane, Step.APPENDED)
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


@pytest.mark.rare
def test_pending_record_that_lands_is_counted_once(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.ingest()
    repair(lane)
    produce(lane, range(50, 60))
    die_after(lane, Step.APPENDED)
    request = lane.detect(minutes(0, 10), force=True).request_id
    assert lane.repair(request or 0).failed == ()
    assert lane.aggregates() == sum_up(range(50))
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up(range(60))
    assert count_certified(lane) == 2


def test_quarantined_orphans_are_adopted_as_quarantined(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(10))
    lane.ingest()
    repair(lane)
    lane.produce([b"rubbish", b"more rubbish"])
    die_after(lane, Step.APPENDED)
    expire(lane, 12)
    with lane.driver() as driver:
        driver.turn()
    assert list_gaps(lane) == [(10, 12, "expired")]
    repair(lane)
    assert list_gaps(lane) == []
    with lane.ledger() as ledger:
        rows = ledger.execute(
            "SELECT records FROM onceover.landing WHERE pipeline = %s AND quarantine_day IS NOT NULL", [lane.name]
        ).fetchall()
    assert [row["records"] for row in rows] == [2]
    assert lane.detect().request_id is None


@pytest.mark.rare
@pytest.mark.parametrize("store", ["kafka", "postgres", "file"])
def test_ledger_restored_behind_the_log_adopts_all(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, store: str, tmp_path: Path
) -> None:
    lane = lanes(offset_store=store, more=f'offset_path = "{tmp_path}/offsets"' if store == "file" else "")
    produce(lane, range(50))
    lane.ingest()
    backup = copy_ledger()
    produce(lane, range(50, 100))
    lane.ingest()
    repair(lane)
    monkeypatch.setenv("ONCEOVER_POSTGRES", backup)
    expire(lane, 100)
    done = run("ledger", "take-root", lane.name, "--reason", "restored")
    assert done.returncode == 0, done.stderr
    with lane.driver() as driver:
        driver.turn()
    assert list_gaps(lane) == [(50, 100, "expired")]
    repair(lane)
    lane.ingest()
    repair(lane)
    assert (list_gaps(lane), lane.aggregates(), count_certified(lane)) == ([], sum_up(range(100)), 2)


@pytest.mark.rare
@pytest.mark.parametrize("store", ["kafka", "postgres"])
def test_lost_ledger_is_refused_then_rebuilt_with_all_records(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    lane = lanes(offset_store=store)
    produce(lane, range(50))
    lane.ingest()
    expire(lane, 50)
    produce(lane, range(50, 100))
    monkeypatch.setenv("ONCEOVER_POSTGRES", make_ledger())
    with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"), lane.driver():
        pass
    done = run("ledger", "rebuild", lane.name)
    assert done.returncode == 0, done.stderr
    lane.ingest()
    repair(lane)
    assert (lane.aggregates(), count_certified(lane)) == (sum_up(range(100)), 2)


@pytest.mark.rare
def test_file_without_a_window_is_given_one_and_adopted(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(5))
    lane.ingest()
    repair(lane)
    produce(lane, range(5, 10))
    die_after(lane, Step.APPENDED)
    expire(lane, 10)
    with lane.driver() as driver:
        driver.turn()
    repair(lane)
    lane.ingest()
    repair(lane)
    assert (list_gaps(lane), lane.aggregates(), count_certified(lane)) == ([], sum_up(range(10)), 2)


@pytest.mark.rare
def test_record_adopted_while_its_batch_lands_counts_once(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.ingest()
    repair(lane)
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
    with lane.open() as context:
        (generation,) = frontiers.list_generations(context.ledger, lane.name)
        holes.accept_loss(context, parse_range(f"{generation}-0:5-10"), minutes(0, 10), "test", "gone")
    lane.ingest()
    repair(lane)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 12)
    late = line.Line(replace(near.record, offset=7, value=event(7, amount=7)), NOON_MS + 7 * 60_000)
    append(lane, 5, line.frame([line.encode(late)]))  # by a writer that was thought dead
    assert len(lane.sweep().differing) == 1
    repair(lane)
    assert lane.aggregates() == sum_up([*range(5), 7, *range(10, 20)])
    lost = lane.explain(5)["ledger"]["losses"]
    assert [(each["start_offset"], each["end_offset"]) for each in lost] == [(5, 7), (8, 10)]
    assert count_certified(lane) == 2


@pytest.mark.rare
def test_open_window_without_orphans_is_searched_once(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(5))
    with lane.driver() as driver:
        driver.turn()
    append(lane, 0, b"\na torn tail\n")
    produce(lane, range(5, 15))
    expire(lane, 10)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    searched = lane.detect()
    assert [f.window.start for f in searched.failed] == [from_ms(NOON_MS)]
    assert lane.repair(searched.request_id or 0).failed == ()
    again = lane.detect()
    assert (again.request_id, again.failed, list_gaps(lane)) == (None, (), [(5, 10, "expired")])


@pytest.mark.rare
def test_orphan_with_two_contents_waits_for_a_decision(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(10))
    lane.ingest()
    repair(lane)
    (near,) = (x for _, x in lane.lines() if x.record.offset == 4)
    source = KafkaPartition("00000000", 0)  # of a topic that was deleted, under a ledger that was lost
    texts = [
        line.encode(line.Line(replace(near.record, source=source, offset=1, value=event(4, amount=n)), near.event_ms))
        for n in (100, 200)
    ]
    append(lane, 0, line.frame(texts))
    assert len(lane.sweep().differing) == 1
    request_id = lane.detect().request_id
    ((_, reason),) = lane.repair(request_id or 0).failed
    assert "1 IDs have more than one content" in reason
    (finding,) = (each for each in lane.explain(0)["findings"] if each["kind"] == Kind.CONFLICT)
    assert "00000000-00000-0000000000000000001" in str(finding["evidence"])
    assert lane.aggregates() == sum_up(range(10))
