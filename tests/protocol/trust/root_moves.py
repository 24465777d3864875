"""R0: marker, registration, rebuild of a lost ledger, and a person's word that another ledger takes the root."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import owns_root
from tests.protocol.trust.state import (
    FOREIGN,
    WINDOWS,
    Action,
    Event,
    Landing,
    Marker,
    Move,
    Scenario,
    State,
    window_of,
)
from tests.protocol.trust.transactions import accounted


def stored_offset(scenario: Scenario, state: State) -> int:
    """The offset store's next offset, or else where the log starts today."""
    stored = state.ledger.stored if scenario.stored_inside else state.stored
    return state.log_start if stored is None else stored


def root_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    if not state.ledger.known and not state.rebuilding:
        yield from _registered(scenario, state)
    if state.rebuilding and not state.ledger.known:
        yield _rebuilt(scenario, state)
    if state.rebuilding and state.left.crashes:
        left = state.left._replace(crashes=state.left.crashes - 1)
        yield Action(Event.REBUILD_KILLED), state._replace(rebuilding=False, left=left)
    rules, marker = scenario.rules, state.marker
    is_refused = state.ledger.known and not owns_root(scenario, state) and not state.rebuilding
    if rules.take_root and is_refused and marker:
        taken = marker._replace(ledger_id=state.ledger.ledger_id)
        yield Action(Event.ROOT_TAKEN), state._replace(marker=taken)


def _registered(scenario: Scenario, state: State) -> Iterator[Move]:
    rules, ledger, marker = scenario.rules, state.ledger, state.marker
    is_used = any(state.files) or any(ledger.rows)
    start = min(stored_offset(scenario, state), state.log_end)
    if rules.marker and marker is None:
        if not is_used or not rules.refuse:
            marked = state._replace(marker=Marker(ledger.ledger_id, start), born=_born(state, start))
            yield Action(Event.MARKED, offset=start), marked
    elif owns_root(scenario, state) and (not rules.refuse or not is_used):
        origin = marker.origin if rules.origin and marker else start
        known = ledger._replace(known=True, origin=origin, reach=origin)
        yield Action(Event.REGISTERED, offset=origin), state._replace(ledger=known, born=_born(state, origin))
    if (is_used or (rules.marker and marker is not None)) and state.driver is None:
        own = marker._replace(ledger_id=ledger.ledger_id) if rules.marker and marker else marker
        yield Action(Event.REBUILD_BEGUN), state._replace(rebuilding=True, marker=own)


def _rebuilt(scenario: Scenario, state: State) -> Move:
    """One transaction: each file is one landing, each file and each window with rows has a window."""
    rules, ledger = scenario.rules, state.ledger
    foreign = {FOREIGN} if rules.rebuild_own and state.marker else set()
    held = tuple(sorted({line for file in state.files for line in file} - foreign))
    start = held[0] >> 1 if held else min(stored_offset(scenario, state), state.log_end)
    origin = state.marker.origin if rules.origin and state.marker else start
    if held:
        origin = min(origin, start)
    reach = max(origin, (held[-1] >> 1) + 1) if held else origin
    found = tuple(bool(state.files[window] or ledger.rows[window]) for window in WINDOWS)
    known = ledger._replace(
        known=True,
        origin=origin,
        reach=reach,
        stored=reach if scenario.stored_inside else None,
        unproved=found,
        listed=found,
    )
    after = state._replace(ledger=known)
    if held:
        batch = tuple(
            Landing(window, 0, len(file), tuple(sorted(set(file) - foreign)), compared=rules.unknown_epochs)
            for window, file in enumerate(state.files)
            if file
        )
        after = accounted(scenario, after, batch, compares=False)
        conflicts = {(line >> 1, window_of(line)) for line in held if line ^ 1 in held}
        after = after._replace(ledger=after.ledger._replace(conflicts=tuple(sorted(conflicts))))
    after = after._replace(rebuilding=False, born=_born(state, after.ledger.origin))
    return Action(Event.REBUILT, lines=held), after


def _born(state: State, first: int) -> int:
    return first if state.born is None else state.born
