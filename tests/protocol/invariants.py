"""Invariants of every state that can be reached. Each returns what is wrong, or None."""

from __future__ import annotations

from collections.abc import Callable

from tests.protocol import facts
from tests.protocol.settlement import MOST_REPAIRS, Settled, forced, settle
from tests.protocol.state import Scenario, State

Invariant = Callable[[Scenario, State, dict[State, Settled]], str | None]


def nothing_lost(scenario: Scenario, state: State, _: dict[State, Settled]) -> str | None:
    """Every offset below a frontier is in raw or in quarantine; so is every offset that the store is past, unless
    an operator moved the store over it."""
    frontiers = facts.progress(scenario, state).frontiers
    for kafka_partition, (frontier, stored) in enumerate(zip(frontiers, state.stored, strict=True)):
        first = scenario.first_of[kafka_partition]
        for record in range(first, first + max(frontier, stored)):
            if record not in state.raw[scenario.file_of(record)] and (
                record < first + frontier or record not in state.skipped
            ):
                return f"record {record} is below frontier {frontier} or stored offset {stored}, and nowhere in raw"
    return None


def certified_is_right(scenario: Scenario, state: State, _: dict[State, Settled]) -> str | None:
    """A window whose version is its certificate's counts each accounted record of it exactly once."""
    for window in range(scenario.windows):
        if facts.is_certified(state, window):
            wanted = facts.right(scenario, state, window)
            if state.rows[window] != wanted:
                return f"window {window} is certified and counts {state.rows[window]}, not {wanted}"
    return None


def no_wrong_window_is_judged_clean(scenario: Scenario, state: State, _: dict[State, Settled]) -> str | None:
    """Detection finds something in every closed window that is wrong."""
    for window, shut in enumerate(facts.closed(scenario, state)):
        if shut and facts.is_clean(scenario, state, window):
            wanted = facts.right(scenario, state, window)
            if state.rows[window] != wanted:
                return f"window {window} counts {state.rows[window]}, not {wanted}, and is judged clean"
    return None


def readers_never_see_half(scenario: Scenario, state: State, _: dict[State, Settled]) -> str | None:
    """The rows of a window and its control row say the same at any moment."""
    for window in range(scenario.windows):
        if state.rows[window] != state.control[window]:
            return f"window {window}: rows count {state.rows[window]}, the control row {state.control[window]}"
    return None


def settles(scenario: Scenario, state: State, memory: dict[State, Settled]) -> str | None:
    """Once faults stop, ingest, detection and at most two repairs a window leave all of them certified and
    right; a repair by force leaves them clean. Blocked windows, and those that close beyond a hole, are left alone."""
    return _unsettled(scenario, settle(scenario, state, memory))


def blocked_is_left_alone_until_asked_for_by_name(
    scenario: Scenario, state: State, memory: dict[State, Settled]
) -> str | None:
    """No claim on a blocked window is out, settling does not touch it, and asking for it by name settles it too."""
    if not any(state.blocked):
        return None
    settled = settle(scenario, state, memory).state
    for window, blocked in enumerate(state.blocked):
        held = any(r.window == window and r.token == state.token[window] for r in state.repairs)
        if blocked and (held or not settled.blocked[window]):
            return f"window {window} is blocked and was tried all the same"
    return _unsettled(scenario, settle(scenario, state, memory, by_name=True))


def _unsettled(scenario: Scenario, settled: Settled) -> str | None:
    state = settled.state
    if not settled.at_rest:
        return "ingest, detection and repair never rest"
    if max(settled.repairs) > MOST_REPAIRS:
        return f"the windows took {settled.repairs} repairs"
    has_hole, shut = bool(facts.holes(state)), facts.closed(scenario, state)
    if has_hole and scenario.log_holds:
        return f"the log has what is missing, and {facts.holes(state)} was not read again"
    for window in range(scenario.windows):
        if state.blocked[window] or (has_hole and not shut[window]) or _empty(scenario, window):
            continue
        wanted = facts.right(scenario, state, window)
        if not facts.is_certified(state, window):
            return f"window {window} is not certified"
        if state.rows[window] != wanted:
            return f"window {window} is certified and counts {state.rows[window]}, not {wanted}"
        repaired = forced(scenario, state, window)
        if not facts.is_clean(scenario, repaired, window):
            again = facts.findings(scenario, repaired, window)
            return f"window {window} was just repaired, and when judged again: {', '.join(map(str, again))}"
    return None


def _empty(scenario: Scenario, window: int) -> bool:
    return window not in scenario.window_of


ALL: tuple[Invariant, ...] = (
    nothing_lost,
    certified_is_right,
    no_wrong_window_is_judged_clean,
    readers_never_see_half,
    settles,
    blocked_is_left_alone_until_asked_for_by_name,
)
