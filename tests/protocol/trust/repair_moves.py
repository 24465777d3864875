"""Repair: claim and read, then a conflict, an adoption, or a publication."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import bytes_are_accounted, hole, is_closed, landed, landed_in
from tests.protocol.trust.state import (
    FOREIGN,
    Action,
    Certificate,
    Event,
    Landing,
    Lines,
    Move,
    Repair,
    Scenario,
    State,
    put,
    window_of,
)
from tests.protocol.trust.transactions import accounted, reopened


def repair_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Claim any closed window, and open ones that may hold what a hole misses or what is accounted for nowhere."""
    if state.repair:
        yield _finished(scenario, state, state.repair)
        return
    yield from _settled(scenario, state)
    for window, known in enumerate(state.ledger.listed):
        if (
            known
            and state.files[window]
            and (_is_to_publish(scenario, state, window) or _is_read_open(scenario, state, window))
        ):
            yield from _claimed(scenario, state, window)


def _settled(scenario: Scenario, state: State) -> Iterator[Move]:
    """Compare what the files hold of a suspected offset: two contents are a conflict of both windows."""
    ledger = state.ledger
    for offset in ledger.suspicions:
        lines = landed(ledger.batches)[offset]
        held = tuple(line for line in sorted(lines) if line in state.files[window_of(line)])
        missing = [line for line in lines if line not in held and not ledger.expired[window_of(line)]]
        if missing and scenario.rules.settle_whole:
            continue
        windows = {window_of(line) for line in held} if len(held) > 1 else set()
        conflicts = {*ledger.conflicts, *((offset, window) for window in windows)}
        after = reopened(state, windows)
        rest = tuple(other for other in ledger.suspicions if other != offset)
        settled = after.ledger._replace(conflicts=tuple(sorted(conflicts)), suspicions=rest)
        yield Action(Event.SETTLED, offset=offset, lines=held), after._replace(ledger=settled)


def _is_to_publish(scenario: Scenario, state: State, window: int) -> bool:
    return is_closed(scenario, state, window) and not state.ledger.expired[window]


def _is_read_open(scenario: Scenario, state: State, window: int) -> bool:
    """Whether the file of a window that cannot be published, open or expired, is read for lines to adopt."""
    rules = scenario.rules
    if not rules.adopt or not rules.adopt_apart or (state.ledger.expired[window] and not rules.adopt_expired):
        return False
    missing = hole(state.ledger)
    if missing and rules.open_any:
        return True
    if bytes_are_accounted(state, window):
        return False
    return (rules.open_idle and state.driver is None) or any(not state.in_log(offset) for offset in missing)


def _claimed(scenario: Scenario, state: State, window: int) -> Iterator[Move]:
    """Say of each intact line of the frozen file what it is."""
    rules, ledger = scenario.rules, state.ledger
    known, decided, held = landed(ledger.batches), dict(ledger.decisions), set(state.files[window])
    own = landed_in(ledger, window)
    if own - held and not ledger.expired[window]:
        return  # blocked: the file has lost lines
    counted: list[int] = []
    pending: list[int] = []
    orphans: list[int] = []
    conflicts: list[int] = []
    for line in sorted(held):
        offset = line >> 1
        if offset in decided:
            if decided[offset] == line:
                counted.append(line)
        elif line ^ 1 in held or (offset in known and line not in known[offset]):
            if line ^ 1 not in held and not rules.stray_is_conflict:
                return  # blocked
            conflicts.append(line)
        elif line in own:
            counted.append(line)
        elif state.in_log(offset) or (not rules.ask_kafka and offset >= ledger.reach):
            pending.append(offset)
        elif line != FOREIGN or not rules.adopt_own:
            orphans.append(line)
    repair = Repair(
        window,
        len(ledger.batches),
        len(state.files[window]),
        tuple(counted),
        tuple(pending),
        tuple(orphans),
        tuple(conflicts),
    )
    yield Action(Event.CLAIMED, window, lines=state.files[window]), state._replace(repair=repair)


def _finished(scenario: Scenario, state: State, repair: Repair) -> Move:
    rules, window, after = scenario.rules, repair.window, state._replace(repair=None)
    if repair.conflicts:
        return _conflicted(after, repair)
    if repair.orphans and rules.adopt and rules.adopt_apart:
        known = landed(state.ledger.batches)
        orphans = tuple(line for line in repair.orphans if line >> 1 not in known)
        return Action(Event.ADOPTED, window, lines=orphans), adopted(scenario, after, window, orphans)
    if not _is_to_publish(scenario, state, window):
        return Action(Event.LEFT_OPEN, window), after
    return _published(scenario, after, repair)


def adopted(scenario: Scenario, state: State, window: int, lines: Lines) -> State:
    """A batch of exact offsets lands without bytes of its own."""
    landing = Landing(window, 0, 0, lines, compared=scenario.rules.unknown_epochs)
    return accounted(scenario, state, (landing,), compares=False) if lines else state


def _conflicted(state: State, repair: Repair) -> Move:
    known, conflicts = landed(state.ledger.batches), set(state.ledger.conflicts)
    for line in repair.conflicts:
        windows = {repair.window, *(window_of(other) for other in known.get(line >> 1, ()))}
        conflicts |= {(line >> 1, window) for window in windows}
    after = reopened(state, {window for _, window in conflicts - set(state.ledger.conflicts)})
    after = after._replace(ledger=after.ledger._replace(conflicts=tuple(sorted(conflicts))))
    return Action(Event.CONFLICTED, repair.window, lines=repair.conflicts), after


def _published(scenario: Scenario, state: State, repair: Repair) -> Move:
    """Replace the rows and certify, unless the certificate counted more and no decision came in between."""
    window, lines, batches = repair.window, repair.lines, repair.batches
    before = state.ledger.certificates[window]
    after = state
    if repair.orphans and scenario.rules.adopt:
        after = adopted(scenario, state, window, repair.orphans)
        lines, batches = tuple(sorted(lines + repair.orphans)), len(after.ledger.batches)
    ledger = after.ledger
    if before and len(lines) < len(before.lines) and before.decisions == ledger.decisions:
        return Action(Event.REFUSED, window), state
    pending = repair.pending if scenario.rules.pending else ()
    certificate = Certificate(
        batches, repair.length, lines, True, pending, ledger.losses, ledger.decisions, ledger.overwritten
    )
    ledger = ledger._replace(
        rows=put(ledger.rows, window, lines),
        unproved=put(ledger.unproved, window, False),
        certificates=put(ledger.certificates, window, certificate),
    )
    return Action(Event.PUBLISHED, window, lines=lines), after._replace(ledger=ledger)
