"""A trace of the model carried out on real Kafka, HDFS and PostgreSQL, by the real driver, detection and repair.

Not in lockstep: the product does in one step what the model does in several, refuses what a mutant would do, and asks
for a person's commands, which the replay then runs. A batch that never reaches its increment is appended by the replay
itself, line by line, since only so can the log expire between its read and its appends. What must agree is the end: all
that raw or Kafka holds is counted once, and nothing else.

Left out are worlds with a cut log, which restarts the broker each time (tests/integration/test_cut_log.py cuts logs),
with an upgrade, for raw does not keep yet which versions evaluated, with a release, which is missed after an upgrade
only, and with raw that expires before the ledger is lost: a rebuild expires a window of the list only where its rows
survive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.integration.events import NOON_MS
from tests.integration.lane import Lane
from tests.integration.ledger_backup import back_up, restore
from tests.integration.other_ledger import make_ledger
from tests.integration.planted_failures import expire, minutes, wait_for_lease_end
from tests.protocol.raw import persons
from tests.protocol.raw.dead_append import append_lines
from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import frontier
from tests.protocol.raw.held import MINUTES, Held, find_wrong, list_lines, read_held, value_of
from tests.protocol.raw.lines import FOREIGN, FRAGMENT, OFFSETS, Line, record_of
from tests.protocol.raw.state import Move, Scenario, State
from tests.protocol.raw.stepped import Stepped

from onceover.errors import OnceoverError
from onceover.fault_points import FaultPoint, RepairStep, Step
from onceover.ledger import repair_requests
from onceover.model.window import WindowRange
from onceover.repair.groups import repair_groups

ROUNDS = 8  # of ingest, detection, repair and persons, until everything is certified
ENDS_BATCH = (
    Event.CRASHED, Event.TORN, Event.TAKEN_OVER, Event.LEDGER_LOST, Event.RESTORED, Event.READ_FAILED,
    Event.INCREMENTED,
)  # fmt: skip


def can_follow(scenario: Scenario) -> bool:
    """Whether the product follows every fault of this world."""
    left = scenario.left
    return not (left.cuts or left.upgrades or left.releases or (left.retentions and left.losses))


@dataclass(slots=True)
class Replay:
    """One pipeline, in step with a trace as far as it can be."""

    lane: Lane
    environment: pytest.MonkeyPatch
    scenario: Scenario
    starts: list[int] = field(init=False)  # of each Kafka partition's log
    ends: list[int] = field(init=False)
    born: tuple[int, ...] | None = None
    driver: Stepped | None = None
    by_hand: bool = False  # the batch under way is appended by the replay
    repair: Stepped | None = None
    backup: bytes | None = None
    has_lost_file: bool = False

    def __post_init__(self) -> None:
        self.starts, self.ends = ([0] * len(self.scenario.records) for _ in range(2))

    def follow(self, trace: list[Move]) -> None:
        """Do what the trace says; look at what is certified after each certificate."""
        for at, (action, after) in enumerate(trace):
            self._do(action, after, [following for following, _ in trace[at + 1 :]])
            if action.did in (Event.CERTIFIED, Event.PUBLISHED):
                self.look()

    def _do(self, action: Action, after: State, rest: list[Action]) -> None:
        window, lines = action.window, action.lines or ()
        match action.did:
            case Event.PRODUCED:
                self._produce(*lines)
            case Event.EXPIRED:
                partition, offset = divmod(action.record - 1, OFFSETS)  # of the last record that expires
                expire(self.lane, offset + 1, partition)
                self.starts[partition] = offset + 1
            case Event.FILE_LOST:
                persons.move_away(self.lane, window)
                self.has_lost_file = True
            case Event.LEDGER_LOST:
                self.kill()
                self.environment.setenv("ONCEOVER_POSTGRES", make_ledger())
            case Event.BACKED_UP:
                self.backup = back_up()
            case Event.RESTORED:
                self.kill()
                assert self.backup is not None
                self.environment.setenv("ONCEOVER_POSTGRES", restore(self.backup))
                wait_for_lease_end(self.lane)  # of the driver that ran when the ledger was backed up
            case Event.REGISTERED:
                self._register()
            case Event.PLANNED | Event.HOLE_PLANNED | Event.LOOKED_AHEAD:
                self._start_driver()
            case Event.READ:
                end = next((each.did for each in rest if each.did in ENDS_BATCH), None)
                self.by_hand = end is not Event.INCREMENTED
                if not self.by_hand and self.driver:
                    self.driver.advance(Step.APPENDED)
            case Event.APPENDED if self.by_hand:
                append_lines(self.lane, window, lines)
            case Event.TORN:
                append_lines(self.lane, window, (*lines, FRAGMENT))
                self._kill_driver()
            case Event.APPENDED_LATE:
                append_lines(self.lane, window, lines)
            case Event.FOREIGN_APPENDED:
                append_lines(self.lane, window, (FOREIGN,))
            case Event.INCREMENTED | Event.LANDED | Event.STORED:
                if self.driver and after.driver:
                    self.driver.advance(Step.INCREMENTED if action.did is Event.INCREMENTED else Step.LANDED)
                else:
                    self._finish_driver()
            case Event.CRASHED | Event.TAKEN_OVER:
                self._kill_driver()
            case Event.RAW_EXPIRED:
                self._finish_repair()
                self._finish_driver()
                persons.expire_raw(self.lane, window)
            case Event.LANDINGS_DELETED:
                self._finish_driver()
                persons.roll_up(self.lane)
            case Event.CERTIFIED | Event.LISTED:
                self._close_idle(after)
                self._detect()
            case Event.CLAIMED:
                self._close_idle(after)
                self._start_repair(minutes(window * MINUTES, window * MINUTES + 5), force=True)
            case Event.SCANNED:
                if self.repair:
                    self.repair.advance(RepairStep.STAGED)
            case Event.UNPROVED | Event.WAITED | Event.REFUSED | Event.PUBLISHED:
                self._finish_repair()
            case Event.ACCEPTED:
                persons.accept_loss(self.lane, action.record)
            case Event.READ_AGAIN | Event.GIVEN_UP:
                persons.give_up(self.lane)
            case _:
                pass  # the product marks, rebuilds and takes a root when a process that needs it starts

    def settle(self) -> Held:
        """Run on without faults until both windows are certified, as far as they hold anything, and all is read."""
        self._finish_repair()
        self._finish_driver()
        for _ in range(ROUNDS):
            for _ in range(3):
                self._start_driver()
                self._finish_driver()
            self._start_repair()
            self._finish_repair()
            held = self.look()
            if held.is_done and held.frontiers == tuple(self.ends):
                return held
            self._call_persons()
        raise AssertionError(f"not all is certified after {ROUNDS} rounds: {held}")

    def look(self) -> Held:
        """Detect and sweep, which find what is wrong with a certified window; then see whether the others are right."""
        self._detect()
        self.lane.sweep()
        held = read_held(self.lane, len(self.ends))
        assert self.born is not None
        if wrong := find_wrong(held, self.born, self.scenario.records):
            raise AssertionError("\n".join([*wrong, str(held)]))
        return held

    def _produce(self, line: Line) -> None:
        partition = record_of(line) // OFFSETS
        self.lane.produce([value_of(line)], kafka_partition=partition, timestamp=NOON_MS)
        self.ends[partition] += 1

    def _register(self) -> None:
        """Register the Kafka partitions where their logs begin, and read nothing."""
        if self.driver:
            return
        self._own_root()
        with self.lane.driver() as driver:
            driver.turn(only_again=True)

    def _own_root(self) -> None:
        persons.own_root(self.lane)
        if self.born is None:
            self.born = tuple(self.starts)

    def _start_driver(self) -> None:
        self._finish_driver()
        self._own_root()
        self.by_hand = False
        self.driver = Stepped(self._drive)

    def _drive(self, point: FaultPoint) -> None:
        with self.lane.driver(point) as driver:
            driver.turn()

    def _finish_driver(self) -> None:
        if self.driver:
            self.driver.advance()
        self.driver = None

    def _kill_driver(self) -> None:
        if self.driver:
            self.driver.kill()
        self.driver = None

    def kill(self) -> None:
        self._kill_driver()
        if self.repair:
            self.repair.kill()
        self.repair = None

    def _close_idle(self, state: State) -> None:
        """Where all is read, and no batch is under way, a turn of the driver finds the topic idle."""
        if not state.driver and all(frontier(state.ledger, at) >= log.end for at, log in enumerate(state.logs)):
            self._start_driver()
            self._finish_driver()

    def _detect(self, window_range: WindowRange | None = None, *, force: bool = False) -> int | None:
        """Detect, as the schedule does without a range; a pipeline that is not registered yet has nothing to detect."""
        try:
            return self.lane.detect(window_range, force=force).request_id
        except OnceoverError:
            persons.own_root(self.lane)
            return None

    def _start_repair(self, window_range: WindowRange | None = None, *, force: bool = False) -> None:
        """Begin to repair what detection requests, or a person by force; it waits once it has claimed."""
        self._finish_repair()
        if request_id := self._detect(window_range, force=force):

            def body(point: FaultPoint) -> None:
                with self.lane.open() as context:
                    registered = context.read_registration()
                    request = repair_requests.read_request(context.ledger, self.lane.name, request_id)
                    repair_groups(self.lane.spark, context, registered, request, point)

            self.repair = Stepped(body)

    def _finish_repair(self) -> None:
        if self.repair:
            self.repair.advance()
        self.repair = None

    def _call_persons(self) -> None:
        if self.has_lost_file:
            persons.give_up(self.lane)
        for line in list_lines(self.born or (), self.scenario.records):
            persons.accept_loss(self.lane, record_of(line))
        if persons.is_blocked(self.lane):  # after three tries before the decision, only a person's command repairs it
            self._start_repair(persons.list_windows())
            self._finish_repair()
