"""Detection that lists files and certifies from the ledger; a person who accepts losses and decides conflicts."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import hole, is_closed, landed, lost_lines, lost_unread, raw_holds
from tests.protocol.trust.findings import is_certified, is_clean
from tests.protocol.trust.repair_moves import adopted
from tests.protocol.trust.state import (
    WINDOWS,
    Action,
    Certificate,
    Event,
    Line,
    Move,
    Scenario,
    State,
    put,
    window_of,
)
from tests.protocol.trust.transactions import reopened


def detection_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    ledger = state.ledger
    for window in WINDOWS:
        if not ledger.listed[window]:
            if scenario.rules.listing and (state.files[window] or ledger.rows[window]):
                listed = ledger._replace(listed=put(ledger.listed, window, True))
                yield Action(Event.LISTED, window), state._replace(ledger=listed)
        elif (
            is_closed(scenario, state, window)
            and not ledger.expired[window]
            and not is_certified(state, window)
            and is_clean(scenario, state, window)
        ):
            yield _certified(state, window)


def _certified(state: State, window: int) -> Move:
    """Certify from the ledger alone: what the last certificate says is pending still is."""
    ledger, lines = state.ledger, state.ledger.rows[window]
    before = ledger.certificates[window]
    pending = before.pending if before else ()
    certificate = Certificate(
        len(ledger.batches),
        len(state.files[window]),
        lines,
        True,
        pending,
        ledger.losses,
        ledger.decisions,
        ledger.overwritten,
    )
    after = ledger._replace(certificates=put(ledger.certificates, window, certificate))
    return Action(Event.CERTIFIED, window, lines=lines), state._replace(ledger=after)


def person_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    ledger, rules, driver = state.ledger, scenario.rules, state.driver
    for offset in hole(ledger):
        is_awaited = rules.loss_waits and driver is not None and driver.start <= offset < driver.end
        may_come = rules.loss_below_end and offset >= state.log_end
        is_held = state.in_log(offset) or may_come or (rules.loss_asks_raw and raw_holds(scenario, state, offset))
        if not is_held and not is_awaited:
            after = reopened(state, WINDOWS)
            losses = tuple(sorted((*ledger.losses, offset)))
            yield (
                Action(Event.ACCEPTED, offset=offset),
                after._replace(ledger=after.ledger._replace(losses=losses)),
            )
    yield from _overwritten(state)
    if scenario.left.file_losses:  # a file that was moved away is put back instead
        yield from _lost(scenario, state)
    for offset in {at for at, _ in ledger.conflicts} - {at for at, _ in ledger.decisions}:
        for line in (offset * 2, offset * 2 + 1):
            yield Action(Event.DECIDED, lines=(line,)), _decided(scenario, state, offset, line)


def _overwritten(state: State) -> Iterator[Move]:
    driver = state.driver
    for offset in lost_unread(state):
        if driver and driver.start <= offset < driver.end:
            continue  # it may have been read
        after = reopened(state, WINDOWS)
        ledger = after.ledger._replace(
            diverged=tuple(other for other in after.ledger.diverged if other != offset),
            overwritten=tuple(sorted({*after.ledger.overwritten, offset})),
        )
        yield Action(Event.OVERWRITTEN, offset=offset), after._replace(ledger=ledger)


def _lost(scenario: Scenario, state: State) -> Iterator[Move]:
    """A closed window whose file was lost is read again from Kafka, or given up once Kafka holds none of it either."""
    for window in WINDOWS:
        lost, rules = lost_lines(state, window), scenario.rules
        if not lost or state.ledger.expired[window] or not is_closed(scenario, state, window):
            continue
        held = tuple(line for line in lost if line == state.line_at(line >> 1))
        after = reopened(state, {window})
        if held and not state.driver:
            files = put(state.files, window, state.files[window] + held)
            yield Action(Event.REREAD, window, lines=held), after._replace(files=files)
        if rules.give_up and (not held or not rules.give_up_asks_kafka):
            ledger = after.ledger._replace(expired=put(after.ledger.expired, window, True))
            yield Action(Event.GIVEN_UP, window), after._replace(ledger=ledger)


def _decided(scenario: Scenario, state: State, offset: int, line: Line) -> State:
    windows, after = {window for at, window in state.ledger.conflicts if at == offset}, state
    if scenario.rules.decide_all:
        if line not in landed(state.ledger.batches).get(offset, ()):
            after = adopted(scenario, state, window_of(line), (line,))
    else:
        windows = {window_of(line)}
    after = reopened(after, windows)
    kept = after.ledger.conflicts
    if not scenario.rules.decide_all:
        kept = tuple(conflict for conflict in kept if conflict[0] != offset or conflict[1] in windows)
    decisions = tuple(sorted((*after.ledger.decisions, (offset, line))))
    return after._replace(ledger=after.ledger._replace(conflicts=kept, decisions=decisions))
