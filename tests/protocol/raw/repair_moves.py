"""A repair: claim; freeze, read and prove; then publish, all or nothing, if it still may."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import asks_for_decision, ever_landed, intact, is_closed, is_under_way, landed, landed_in
from tests.protocol.raw.lines import RELEASED, WINDOWS, Line, Lines, Records, record_of
from tests.protocol.raw.state import Certificate, Move, Repair, Scenario, State, put


def repair_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    if state.repair:
        step = _scanned if state.repair.length is None else _published
        yield step(scenario, state, state.repair)
        return
    for window in WINDOWS:
        has_any = state.files[window] or state.ledger.rows[window]
        is_known = state.ledger.listed[window] and not state.expired[window]
        if is_known and has_any and is_closed(scenario, state, window):
            yield Action(Event.CLAIMED, window), state._replace(repair=Repair(window, len(state.ledger.batches)))


def _scanned(scenario: Scenario, state: State, repair: Repair) -> Move:
    """Judge each line of the frozen file by what had landed at the claim."""
    rules, window, file = scenario.rules, repair.window, state.files[repair.window]
    batches, certificate = state.ledger.batches[: repair.batches], state.ledger.certificates[window]
    lines, own = intact(scenario, file), landed_in(batches, window)
    base = certificate.base if certificate else None
    is_proved = not base or intact(scenario, file[: base.length]) == frozenset(base.lines)
    own = (own | frozenset(base.lines if base else ())) - frozenset(state.ledger.given_up)
    if rules.proof and not (is_proved and own <= lines):
        return Action(Event.UNPROVED, window), state._replace(repair=None)
    if not rules.epoch_in_id:
        lines = frozenset(line for line in lines if line & 1 == 0 or line - 1 not in lines)
    everywhere = landed(batches).union(state.ledger.deleted if rules.deleted_landed else ())
    elsewhere = everywhere - own if rules.nowhere else frozenset[Line]()
    extras = [line for line in lines - own - elsewhere if _is_extra(scenario, state, window, line)]
    if any(asks_for_decision(scenario, state.ledger, file, line) for line in extras):
        return Action(Event.UNPROVED, window), state._replace(repair=None)
    counted = (lines & own) | set(extras if rules.extras else ())
    named = tuple(sorted(counted - own))
    if is_under_way(scenario, state, _records(named)):
        return Action(Event.WAITED, window), state._replace(repair=None)
    read = repair._replace(
        length=len(file), lines=tuple(sorted(counted)), extras=named, strays=bool(lines - own - set(extras))
    )
    return Action(Event.SCANNED, window, lines=file), state._replace(repair=read)


def _records(lines: Lines) -> Records:
    return tuple(sorted({record_of(line) for line in lines}))


def _is_extra(scenario: Scenario, state: State, window: int, line: Line) -> bool:
    """Whether a line that landed nowhere counts here: it is of no release, and no person said otherwise."""
    if line < 0:
        return True
    if line & RELEASED:
        return not scenario.rules.released
    return dict(state.ledger.decisions).get(record_of(line), window) == window


def _have_landed(scenario: Scenario, state: State, repair: Repair) -> bool:
    """Whether an extra has landed since the claim: its landing may be deleted before anybody compares."""
    return scenario.rules.check_again and not ever_landed(state.ledger).isdisjoint(repair.extras)


def _least(scenario: Scenario, state: State, window: int, before: Certificate) -> int:
    """How many lines were certified, without what a person gave up and the extras that count elsewhere since."""
    kept = [line for line in before.lines if line not in state.ledger.given_up]
    if not scenario.rules.less_landed:
        return len(kept)
    elsewhere = ever_landed(state.ledger) - landed_in(state.ledger.batches, window)
    decided = {record for record, other in state.ledger.decisions if other != window}
    gone = [line for line in kept if line in elsewhere or record_of(line) in decided]
    return len(kept) - sum(record_of(line) in before.extras for line in gone)


def _published(scenario: Scenario, state: State, repair: Repair) -> Move:
    window, ledger = repair.window, state.ledger
    before = ledger.certificates[window]
    if is_under_way(scenario, state, _records(repair.extras)) or _have_landed(scenario, state, repair):
        return Action(Event.WAITED, window), state._replace(repair=None)
    if scenario.rules.never_less and before and len(repair.lines) < _least(scenario, state, window, before):
        return Action(Event.REFUSED, window), state._replace(repair=None)
    assert repair.length is not None
    certificate = Certificate(
        repair.batches,
        repair.length,
        repair.lines,
        True,
        _records(repair.extras),
        ledger.unread,
        repair.strays,
        before.base if before else None,
        ledger.given_up,
    )
    after = ledger._replace(
        rows=put(ledger.rows, window, repair.lines), certificates=put(ledger.certificates, window, certificate)
    )
    return Action(Event.PUBLISHED, window, lines=repair.lines), state._replace(ledger=after, repair=None)
