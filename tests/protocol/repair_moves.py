"""Detection and repair: certify what is judged clean, ask for refills, claim, freeze and read, publish or fail."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol import facts
from tests.protocol.mutant import Mutant
from tests.protocol.state import Action, Certificate, Event, Look, Move, Repair, Scenario, State, put, without

from onceover.fault_points import RepairStep

MOST_REPAIRS_AT_ONCE = 2


def detection_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """A scheduled detection at any moment: at once, or slowly (judged now, written down later)."""
    shut = facts.closed(scenario, state)
    for window in scenario.repaired:
        if shut[window] and not state.blocked[window] and not facts.is_certified(state, window):
            yield from _judged(scenario, state, window)
    for at, look in enumerate(state.looks):
        rest = state._replace(looks=without(state.looks, at))
        same = look.certificate.version == state.version[look.window]
        if same or scenario.has(Mutant.CERTIFY_AT_ANY_VERSION):
            now = look.certificate._replace(version=state.version[look.window])
            yield Action(Event.LOOK_WRITTEN, at), certified(rest, look.window, now)
        else:
            yield Action(Event.LOOK_REFUSED, at), rest
    yield from refill_moves(scenario, state)


def _judged(scenario: Scenario, state: State, window: int) -> Iterator[Move]:
    if not facts.is_clean(scenario, state, window):
        return
    fresh = facts.certificate_from_ledger(scenario, state, window)
    yield Action(Event.CERTIFIED, window), certified(state, window, fresh)
    if state.left.looks:
        spent = state._replace(left=state.left._replace(looks=state.left.looks - 1))
        yield Action(Event.LOOKED, window), spent._replace(looks=(*state.looks, Look(window, fresh)))


def refill_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Detection asks for what a hole misses, if the log still has it."""
    missing = facts.holes(state)
    if scenario.log_holds and missing and missing != state.wanted:
        yield Action(Event.REFILL_WANTED, 0, str(missing)), state._replace(wanted=missing)


def certified(state: State, window: int, certificate: Certificate) -> State:
    """The window has a new certificate; its failed tries are forgotten."""
    return state._replace(
        certificates=put(state.certificates, window, certificate),
        tries=put(state.tries, window, 0),
        blocked=put(state.blocked, window, False),
    )


def repair_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Claims of closed windows, right or not, and the next moves of the claims that are out."""
    if state.left.repairs and len(state.repairs) < MOST_REPAIRS_AT_ONCE:
        shut = facts.closed(scenario, state)
        spent = state._replace(left=state.left._replace(repairs=state.left.repairs - 1))
        for window in scenario.repaired:
            if shut[window] and (not state.blocked[window] or scenario.has(Mutant.BLOCKED_TRIED)):
                yield claim(scenario, spent, window)
            elif shut[window]:
                yield claim(scenario, spent, window, by_name=True)
    for at, repair in enumerate(state.repairs):
        if repair.frozen is None:
            yield freeze(state, at)
        else:
            yield from publish(scenario, state, at)
        if state.left.failed_tries:
            spent = state._replace(left=state.left._replace(failed_tries=state.left.failed_tries - 1))
            yield Action(Event.TRY_FAILED, at, "reading raw failed"), fail(scenario, spent, at)


def claim(scenario: Scenario, state: State, window: int, *, by_name: bool = False) -> Move:
    """Take the window from any holder (a claim that is not renewed runs out), and read the repair's inputs."""
    token, certificate = state.token[window] + 1, state.certificates[window]
    repair = Repair(
        window=window,
        token=token,
        version=state.version[window],
        landing_set=facts.landing_set(state, window),
        accounted=facts.progress(scenario, state).accounted,
        certified=certificate.counts if certificate else None,
    )
    after = state._replace(token=put(state.token, window, token), repairs=(*state.repairs, repair))
    if by_name:
        after = after._replace(tries=put(state.tries, window, 0), blocked=put(state.blocked, window, False))
    return Action(RepairStep.CLAIMED, window, "by name" if by_name else ""), after


def freeze(state: State, at: int) -> Move:
    """Note the file's length; what is read and staged later lies within it."""
    repair = state.repairs[at]
    after = state._replace(repairs=put(state.repairs, at, repair._replace(frozen=len(state.raw[repair.window]))))
    return Action(RepairStep.STAGED, at), after


def publish(scenario: Scenario, state: State, at: int) -> Iterator[Move]:
    """Overwrite and certify, unless raw proves nothing, the claim was lost or the window has changed since."""
    repair = state.repairs[at]
    window = repair.window
    counts, reasons = facts.rebuilt_counts(scenario, state, repair)
    if reasons:
        yield Action(Event.TRY_FAILED, at, reasons[0]), fail(scenario, state, at)
        return
    same_version = repair.version == state.version[window] or scenario.has(Mutant.PUBLISH_AT_ANY_VERSION)
    if repair.token != state.token[window] or not same_version:
        yield Action(Event.PUBLISH_REFUSED, at), state._replace(repairs=without(state.repairs, at))
        return
    if scenario.has(Mutant.PUBLISH_IN_TWO) and not repair.halfway:
        yield (
            Action(Event.ROWS_DELETED, at),
            state._replace(
                rows=put(state.rows, window, scenario.nothing),
                repairs=put(state.repairs, at, repair._replace(halfway=True)),
            ),
        )
        return
    written = state._replace(
        rows=put(state.rows, window, counts),
        control=put(state.control, window, counts),
        repairs=without(state.repairs, at),
    )
    stated = Certificate(state.version[window], repair.landing_set, repair.frozen or 0, counts)
    yield Action(RepairStep.PUBLISHED, at, str(counts)), certified(written, window, stated)


def fail(scenario: Scenario, state: State, at: int) -> State:
    """Count a failed try, unless the claim was lost; the last one blocks the window."""
    repair = state.repairs[at]
    after = state._replace(repairs=without(state.repairs, at))
    if repair.token != state.token[repair.window]:
        return after
    tries = state.tries[repair.window] + 1
    return after._replace(
        tries=put(state.tries, repair.window, tries),
        blocked=put(state.blocked, repair.window, tries >= scenario.max_tries),
    )
