"""Lines that no landing accounts for: how they arise, and what the aggregates have to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from tests.integration.events import NOON_MS, Rows, count_events, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import fail, minutes

from onceover.detection import holes
from onceover.errors import TransientError
from onceover.fault_points import AnyStep, FaultPoint, Step
from onceover.ledger import repair_requests
from onceover.model.offsets import OffsetRange
from onceover.model.window import from_ms


def repair(lane: Lane) -> None:
    """Detect and repair, as the schedule does, until nothing is requested."""
    for _ in range(4):
        request_id = lane.detect().request_id
        if request_id is None:
            return
        assert lane.repair(request_id).failed == ()
    raise AssertionError("each detection requests one more repair")


def sum_up(produced: Iterable[int]) -> Rows:
    """Return what the aggregates have to be for these events, of the minute n % 10 and the amount n."""
    return count_events(event(n % 10, amount=n) for n in produced)


def produce(lane: Lane, numbers: Iterable[int]) -> None:
    lane.produce([event(n % 10, amount=n) for n in numbers])


def land(lanes: Lanes, records: int) -> Lane:
    """Return a pipeline that has landed so many records, and whose closed windows are certified."""
    lane = lanes()
    produce(lane, range(records))
    lane.ingest()
    repair(lane)
    return lane


def append_and_die(lane: Lane, numbers: Iterable[int]) -> None:
    """Produce these records, and kill the driver between their append and their landing."""
    produce(lane, numbers)
    die_after(lane, Step.APPENDED)


def accept_loss(lane: Lane, start: int, end: int) -> None:
    """Do as `onceover accept-loss` does with these offsets, for the windows from noon on."""
    with lane.open() as context:
        holes.accept_loss(context, OffsetRange(lane.source(), start, end), minutes(0, 15), "test", "gone")


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
