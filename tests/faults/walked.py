"""A pipeline with the walk's own count of what it produced, and what happens to it: each a feature or a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from tests.faults.conftest import Jobs, hold
from tests.faults.ends import end_lease
from tests.integration.compaction import expire_window
from tests.integration.events import NOON, Rows, count_events, count_minutes, event, moment
from tests.integration.extras import repair
from tests.integration.lane import Lane
from tests.integration.planted_failures import list_gaps, minutes, replay, skip_to
from tests.integration.releases import accept_nameless, make_nameless, release

from onceover.fault_points import RepairStep, Step
from onceover.ledger.takings import list_takings, take_windows
from onceover.ledger.windows import WindowState, list_windows

LENGTH = 5  # minutes of a window
RUBBISH = b"{"


@dataclass(slots=True)
class Walk:
    """What was produced, by offset: minute, kind and amount, None for rubbish. The first window loses its text. Unless
    a compacted file holds its records too, it has expired, and nothing comes into it any more; none of its records
    needs a release."""

    lane: Lane
    jobs: Jobs
    chance: Random
    produced: list[tuple[int, str, int] | None] = field(default_factory=list)
    minute: int = 0
    has_lost_text: bool = False
    has_expired: bool = False
    has_cut_over: bool = False

    def produce(self, *minutes: int) -> None:
        """Produce a record of each of these minutes; without any, of the next ones: some nameless, but not the last of
        these, and one rubbish."""
        values, last = [], self.minute + 3
        for minute in minutes or range(self.minute, self.minute + 4):
            kind = "none" if LENGTH <= minute != last and self.chance.random() < 0.4 else "a"
            amount = len(self.produced)
            values.append(event(minute, amount=amount) if kind == "a" else make_nameless(minute, amount))
            self.produced.append((minute, kind, amount))
        if not minutes:
            self.minute += 4
            values.append(RUBBISH)
            self.produced.append(None)
        self.lane.produce(values)

    def count(self) -> Rows:
        """Return what the aggregates have to be once all is read and released."""
        return count_events(event(minute, kind, amount) for minute, kind, amount in filter(None, self.produced))

    def list_certified(self) -> set[float]:
        """Return the certified windows, by minutes after noon."""
        with self.lane.ledger() as ledger:
            rows = list_windows(ledger, self.lane.name, WindowState.CERTIFIED)
        return {count_minutes(start) for row in rows if isinstance(start := row["window_start"], datetime)}

    def settle(self) -> None:
        end_lease(self.lane)
        self.lane.ingest()
        self.lane.sweep()
        repair(self.lane)

    def make_window(self) -> int:
        """Produce until there is a window that did not exist before, have it certified, and return its first minute."""
        self.produce()
        self.produce()
        self.settle()
        return (self.minute - 1) // LENGTH * LENGTH


def come_late(walk: Walk) -> None:
    first = LENGTH if walk.has_expired else 0
    walk.settle()
    walk.produce(*(walk.chance.randrange(first, walk.minute) for _ in range(3)))
    walk.lane.ingest()
    late = {x[0] // LENGTH * LENGTH for x in walk.produced[-3:] if x and (x[1] == "a" or walk.has_cut_over)}
    assert not late & walk.list_certified(), "by the landing itself, before a sweep compares rows"


def land_twice(walk: Walk) -> None:
    walk.produce()
    replay(walk.lane)


def kill_ingest(walk: Walk) -> None:
    walk.produce()
    job = hold(walk.jobs("ingest.py", "--pipeline", walk.lane.name), walk.chance.choice(list(Step)))
    job.kill()
    end_lease(walk.lane)


def kill_repair(walk: Walk) -> None:
    land_twice(walk)
    walk.lane.ingest()
    request = walk.lane.detect().request_id
    assert request is not None
    job = walk.jobs("repair.py", "--pipeline", walk.lane.name, "--request", str(request))
    hold(job, walk.chance.choice((RepairStep.CLAIMED, RepairStep.STAGED, RepairStep.PUBLISHED)))
    job.kill()
    assert walk.lane.repair(request).failed == ()


def cut_over(walk: Walk) -> None:
    if not walk.has_cut_over:
        walk.settle()
        accept_nameless(walk.lane)
        walk.has_cut_over = True


def release_all(walk: Walk) -> None:
    cut_over(walk)
    walk.settle()
    release(walk.lane)


def skip_offsets(walk: Walk) -> None:
    walk.settle()
    walk.produce()
    skip_to(walk.lane, len(walk.produced))
    walk.produce()
    walk.lane.turn()
    assert list_gaps(walk.lane)
    repair(walk.lane)
    assert not list_gaps(walk.lane), "read again"


def compact(walk: Walk) -> None:
    walk.make_window()
    done = walk.lane.compact()
    assert done
    assert {each.why for each in done} == {None}


def expire(walk: Walk) -> None:
    if walk.has_lost_text:
        return
    walk.settle()
    walk.has_lost_text, walk.has_expired = True, not expire_window(walk.lane, NOON)


def take(walk: Walk) -> None:
    land_twice(walk)
    walk.lane.ingest()
    with walk.lane.ledger() as ledger:
        taken, _ = take_windows(ledger, walk.lane.name, minutes(0, 1_000), "kim", "INC-1")
        assert list_takings(ledger, walk.lane.name)
    assert taken


def lose_lines(walk: Walk) -> None:
    minute = walk.make_window()
    path = walk.lane.window_file(minute)
    walk.lane.overwrite(path, walk.lane.read(path)[:100])
    plan, done = walk.lane.reread(minute)
    assert plan.held
    assert done is not None
    assert done.confirmed


def spoil_row(walk: Walk) -> None:
    start = moment(walk.make_window())
    with walk.lane.ledger() as ledger:
        spoil = f"UPDATE aggregates.{walk.lane.name} SET events = events + 1 WHERE window_start = %s"
        assert ledger.execute(spoil, [start]).rowcount
    assert walk.lane.sweep().differing


EVERY: tuple[Callable[[Walk], None], ...] = (
    come_late, land_twice, kill_ingest, kill_repair, cut_over, release_all, skip_offsets, compact, expire,
    take, lose_lines, spoil_row,
)  # fmt: skip
