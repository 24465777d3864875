"""A trace of the model carried out on real Kafka, HDFS and PostgreSQL, by the real driver, detection and repair.

Not in lockstep: the product does in one step what the model does in several, refuses what a mutant would do, and asks
for a person's commands, which the replay then runs. A batch that never reaches its increment is appended by the replay
itself, line by line, since only so can the log expire between its read and its appends. What must agree is the end: all
that raw or Kafka holds is counted once, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.integration.cut_logs import bring_back_log, cut_log
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.ledger_backup import back_up, restore
from tests.integration.other_ledger import make_ledger
from tests.integration.planted_failures import expire, minutes, wait_for_lease_end
from tests.protocol.trust import persons
from tests.protocol.trust.dead_append import append_lines
from tests.protocol.trust.held import MINUTES, Held, amount_of, find_wrong, minute_of, read_held
from tests.protocol.trust.state import WINDOWS, Action, Event, Line, Lines, Move
from tests.protocol.trust.stepped import Stepped

from onceover.errors import OnceoverError
from onceover.fault_points import FaultPoint, RepairStep, Step
from onceover.ledger import repair_requests
from onceover.model.window import WindowRange
from onceover.repair.rounds import run_rounds
from onceover_local.stack import Stack

ROUNDS = 8  # of ingest, detection, repair and persons, until everything is certified
ENDS_IN_REPAIR = (Event.CONFLICTED, Event.ADOPTED, Event.LEFT_OPEN, Event.REFUSED, Event.PUBLISHED)
ENDS_BATCH = (
    Event.CRASHED, Event.TORN, Event.TAKEN_OVER, Event.LEDGER_LOST, Event.RESTORED, Event.READ_FAILED,
    Event.INCREMENTED,
)  # fmt: skip


@dataclass(slots=True)
class Replay:
    """One pipeline, in step with a trace as far as it can be."""

    lane: Lane
    stack: Stack
    environment: pytest.MonkeyPatch
    records: int
    amounts: dict[bytes, int] = field(default_factory=dict)
    contents: dict[Line, bytes] = field(default_factory=dict)
    log_end: int = 0
    log_start: int = 0
    content: int = 0
    born: int | None = None
    decided: dict[int, Line] = field(default_factory=dict)
    driver: Stepped | None = None
    before_cut: tuple[dict[str, bytes], int] = field(default_factory=lambda: ({}, 0))
    away: int | None = None  # the window whose file was moved away
    by_hand: bool = False  # the batch under way is appended by the replay
    repair: Stepped | None = None
    backup: bytes | None = None
    backup_decided: dict[int, Line] = field(default_factory=dict)
    is_lost: bool = False  # that file, for good
    has_overwritten: bool = False  # a person has accepted overwritten records
    has_past_end: bool = False  # ... and said that lines past the log's end are the pipeline's own
    wrong: list[str] = field(default_factory=list)

    def follow(self, trace: list[Move]) -> None:
        """Do what the trace says; look at what is certified after each certificate."""
        for at, (action, _) in enumerate(trace):
            self._do(action, [following for following, _ in trace[at + 1 :]])
            if action.did in (Event.CERTIFIED, Event.PUBLISHED):
                self._look()

    def _do(self, action: Action, rest: list[Action]) -> None:
        match action.did:
            case Event.PRODUCED:
                self._produce()
            case Event.EXPIRED:
                expire(self.lane, action.offset)
                self.log_start = action.offset
            case Event.CUT:
                self.before_cut = cut_log(self.stack, self.lane.topic, action.offset), self.log_end
                self.log_end, self.content = action.offset, 1
            case Event.BACK:
                files, self.log_end = self.before_cut
                bring_back_log(self.stack, self.lane.topic, files)
                self.content = 0
            case Event.MOVED | Event.FILE_LOST:
                persons.move_away(self.lane, action.window)
                self.away, self.is_lost = action.window, action.did is Event.FILE_LOST
            case Event.PUT_BACK:
                self._put_back()
            case Event.SETTLED:
                self._start_repair()
                self._finish_repair()
            case Event.LEDGER_LOST:
                self.kill()
                self.environment.setenv("ONCEOVER_POSTGRES", make_ledger())
                self.decided = {}
            case Event.BACKED_UP:
                self.backup, self.backup_decided = back_up(), dict(self.decided)
            case Event.RESTORED:
                self.kill()
                assert self.backup is not None
                self.environment.setenv("ONCEOVER_POSTGRES", restore(self.backup))
                self.decided = dict(self.backup_decided)
                wait_for_lease_end(self.lane)  # of the driver that ran when the ledger was backed up
            case Event.MARKED | Event.REGISTERED:
                self._register()
            case Event.PLANNED | Event.REFILL_PLANNED | Event.LOOKED_AHEAD:
                self._start_driver()
            case Event.READ:
                end = next((each.did for each in rest if each.did in ENDS_BATCH), None)
                self.by_hand = end is not Event.INCREMENTED
                if not self.by_hand and self.driver:
                    self.driver.advance(Step.APPENDED)
            case Event.APPENDED | Event.TORN | Event.APPENDED_LATE | Event.FOREIGN_APPENDED:
                if self.by_hand or action.did in (Event.APPENDED_LATE, Event.FOREIGN_APPENDED):
                    self._append(action.window, action.lines or ())
                if action.did is Event.TORN:
                    self._kill_driver()
            case Event.INCREMENTED | Event.LANDED | Event.STORED:
                if self.driver:
                    step = {Event.INCREMENTED: Step.INCREMENTED, Event.LANDED: Step.LANDED}.get(action.did)
                    self.driver.advance(step)
            case Event.CRASHED | Event.TAKEN_OVER:
                self._kill_driver()
            case Event.RAW_EXPIRED:
                self._finish_repair()
                self._finish_driver()
                persons.expire_raw(self.lane, action.window)
            case Event.CERTIFIED | Event.LISTED:
                self._detect()
            case Event.CLAIMED:
                self._start_repair()
            case Event.ACCEPTED:
                persons.accept_loss(self.lane, action.offset)
            case Event.OVERWRITTEN | Event.REREAD | Event.GIVEN_UP:
                self._accept_what_is_gone()
            case Event.DECIDED:
                self._decide((action.lines or (0,))[0])
            case _:
                if action.did in ENDS_IN_REPAIR:
                    self._finish_repair()
                # The product marks, rebuilds and takes a root when a process that needs it starts.

    def settle(self) -> Held:
        """Run on without faults until both windows are certified, as far as they hold anything. As in the model, a log
        that was cut below what is known of it grows again; nothing else is produced."""
        self._finish_repair()
        self._finish_driver()
        self._put_back()
        for _ in range(ROUNDS):
            for _ in range(3):
                self._start_driver()
                if self.driver:
                    self.driver.advance()
            self._start_repair()
            self._finish_repair()
            held = self._look()
            if (
                all(
                    certified or held.is_expired[window] or not (held.files[window] or held.counted[window])
                    for window, certified in enumerate(held.is_certified)
                )
                and held.frontier == self.log_end
            ):
                return held
            self._call_persons(held)
            if self.log_end < min(held.reach, self.records):
                self._produce()
        raise AssertionError(f"not all is certified after {ROUNDS} rounds: {held}")

    def _put_back(self) -> None:
        if self.away is not None and not self.is_lost:
            persons.put_back(self.lane, self.away)
        self.away = None

    def _produce(self) -> None:
        self.lane.produce([self._make(self.log_end * 2 + self.content)], timestamp=NOON_MS)
        self.log_end += 1

    def _make(self, line: Line) -> bytes:
        value = event(minute_of(line), amount=amount_of(line))
        self.amounts[value], self.contents[line] = amount_of(line), value
        return value

    def _accept_what_is_gone(self) -> None:
        self.has_overwritten |= persons.accept_overwritten(self.lane)
        if self.is_lost:
            persons.give_up(self.lane)

    def _append(self, window: int, lines: Lines) -> None:
        """Append as a driver does that has read before, and whose ledger never hears of it."""
        append_lines(self.lane, window, {line: self.contents.get(line) or self._make(line) for line in lines})

    def _register(self) -> None:
        """Register the Kafka partition where the log begins, and read nothing."""
        if self.driver:
            return
        persons.own_root(self.lane)
        self._set_born()
        with self.lane.driver() as driver:
            driver.turn(refills_only=True)

    def _set_born(self) -> None:
        if self.born is None:
            self.born = self.log_start

    def _finish_driver(self) -> None:
        if self.driver:
            self.driver.advance()
        self.driver = None

    def _start_driver(self) -> None:
        self._finish_driver()
        persons.own_root(self.lane)
        self._set_born()
        self.by_hand = False
        self.driver = Stepped(self._drive)

    def _drive(self, point: FaultPoint) -> None:
        with self.lane.driver(point) as driver:
            driver.turn()

    def _kill_driver(self) -> None:
        if self.driver:
            self.driver.kill()
        self.driver = None

    def kill(self) -> None:
        self._kill_driver()
        if self.repair:
            self.repair.kill()
        self.repair = None

    def _detect(self, window_range: WindowRange | None = None) -> int | None:
        """Detect, as the schedule does without a range; a pipeline that is not registered yet has nothing to detect."""
        try:
            return self.lane.detect(window_range).request_id
        except OnceoverError:
            persons.own_root(self.lane)
            return None

    def _start_repair(self, window_range: WindowRange | None = None) -> None:
        self._finish_repair()
        if request_id := self._detect(window_range):

            def body(point: FaultPoint) -> None:
                with self.lane.open() as context:
                    registered = context.read_registration()
                    request = repair_requests.read_request(context.ledger, self.lane.name, request_id)
                    run_rounds(self.lane.spark, context, registered, request, point)

            self.repair = Stepped(body)
            self.repair.advance(RepairStep.STAGED)

    def _finish_repair(self) -> None:
        if self.repair:
            self.repair.advance()
        self.repair = None

    def _decide(self, line: Line) -> None:
        persons.own_root(self.lane)
        if persons.decide(self.lane, line, self.content):
            self.decided[line >> 1] = line

    def _call_persons(self, held: Held) -> None:
        self._accept_what_is_gone()
        for offset in range(self.born or 0, self.records):
            lines = held.lines_at(offset)
            if not lines:
                persons.accept_loss(self.lane, offset)
            elif len(lines) == 2 and offset not in self.decided:
                self._decide(lines[-1])
        if persons.store_past_end(self.lane):
            self.has_past_end = True
            self._start_driver()
            self._finish_driver()
        if persons.is_blocked(self.lane):  # after three tries before the decision, only a person's command repairs it
            self._start_repair(minutes(0, len(WINDOWS) * MINUTES))
            self._finish_repair()

    def _look(self) -> Held:
        """Detect and sweep, which find what is wrong with a certified window; then see whether the others are right."""
        self._detect()
        self.lane.sweep()
        held = read_held(self.lane, self.amounts)
        assert self.born is not None
        self.wrong += find_wrong(held, self.born, self.decided, self.records)
        assert self.wrong == []
        return held
