"""Lines that no landing accounts for: how they arise, and what the aggregates have to be."""

from __future__ import annotations

from collections.abc import Iterable

from tests.integration.events import Rows, count_events, event, moment
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, minutes

from onceover.detection import holes
from onceover.fault_points import Step
from onceover.ledger import repair_requests
from onceover.model.offsets import OffsetRange
from onceover.model.window import WindowRange


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


def require_counted(lane: Lane, produced: Iterable[int]) -> None:
    """Do what schedules do; require that each of these events counts once, and that their windows are certified."""
    repair(lane)
    right = sum_up(produced)
    assert (lane.aggregates(), count_certified(lane)) == (right, len(right))


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
    kill_after(lane, Step.APPENDED)


def accept_loss(lane: Lane, start: int, end: int) -> None:
    """Do as `onceover accept-loss` does with these offsets, for the windows from noon on."""
    with lane.open() as context:
        holes.accept_loss(context, OffsetRange(lane.source(), start, end), minutes(0, 15), "test", "gone")


def accept_gap(lane: Lane, windows: WindowRange) -> None:
    """Accept the loss of all that ingest has not read, one range, in these windows."""
    with lane.open() as context:
        (gap,) = holes.probe_holes(context)
        assert holes.accept_loss(context, gap.offsets, windows, "test", "expired")[0] == (gap.offsets,)


def repair_now(lane: Lane) -> None:
    """Repair both windows, without the detection that would wait for the batch in flight."""
    with lane.ledger() as ledger:
        windows = {moment(minute): () for minute in (0, 5)}
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
