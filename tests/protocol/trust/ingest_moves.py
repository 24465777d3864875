"""The driver: plan, read, append, increment, land, commit its offset."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import by_window, diverged, hole, lost_unread, owns_root
from tests.protocol.trust.root_moves import stored_offset
from tests.protocol.trust.state import WINDOWS, Action, Driver, Event, Landing, Move, Scenario, State, put, window_of
from tests.protocol.trust.transactions import accounted, reopened


def ingest_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    if state.driver:
        yield _next_step(scenario, state, state.driver)
    elif state.ledger.known and owns_root(scenario, state) and not state.rebuilding:
        yield from _planned(scenario, state)


def _planned(scenario: Scenario, state: State) -> Iterator[Move]:
    """Read on from the stored offset, again from where the log has diverged; what a hole misses goes first."""
    at, after, ledger = stored_offset(scenario, state), state, state.ledger
    at = min(max(at, state.log_start), state.log_end)
    if cut := diverged(scenario, state):
        at = min(*cut, at)
        beyond = {
            landing.window
            for batch in ledger.batches
            for landing in batch
            if any(line >> 1 >= at for line in landing.lines)
        }
        after = reopened(state, beyond)
    if (cut or ledger.diverged) and state.left.expiries:  # else nothing that is seen now is lost unread
        seen = tuple(sorted({*cut, *lost_unread(state)}))
        after = after._replace(ledger=after.ledger._replace(diverged=seen))
    if at > ledger.reach:
        after = after._replace(ledger=after.ledger._replace(reach=at))
    if missing := [offset for offset in hole(after.ledger) if state.in_log(offset)]:
        end = missing[0] + 1
        while end in missing:
            end += 1
        driver = Driver("append", missing[0], end, True, None, ())
        yield Action(Event.REFILL_PLANNED, offset=missing[0], end=end), after._replace(driver=driver)
    elif at < state.log_end:
        driver = Driver("append", at, state.log_end, False, None, ())
        yield Action(Event.PLANNED, offset=at, end=state.log_end), after._replace(driver=driver)
    elif after != state:
        yield Action(Event.LOOKED_AHEAD, offset=after.ledger.reach), after


def _next_step(scenario: Scenario, state: State, driver: Driver) -> Move:
    if driver.step == "append":
        return _read(state, driver) if driver.read is None else _appended(state, driver, driver.read)
    if driver.step == "increment":
        return _incremented(state, driver, driver.read or ())
    if driver.step == "land":
        return _landed(scenario, state, driver)
    return Action(Event.STORED, offset=driver.end), state._replace(stored=driver.end, driver=None)


def _read(state: State, driver: Driver) -> Move:
    lines = tuple(state.line_at(offset) for offset in range(driver.start, driver.end))
    found = tuple(line for line in lines if line is not None)
    if len(found) < len(lines):
        return Action(Event.READ_FAILED), state._replace(driver=None)
    return Action(Event.READ, lines=found), state._replace(driver=driver._replace(read=found))


def _appended(state: State, driver: Driver, read: tuple[int, ...]) -> Move:
    groups = list(by_window(read))
    window, lines = groups[len(driver.appended)]
    appended = (*driver.appended, Landing(window, len(state.files[window]), len(lines), lines))
    after = driver._replace(step="increment" if len(appended) == len(groups) else "append", appended=appended)
    files = put(state.files, window, state.files[window] + lines)
    return Action(Event.APPENDED, window, lines=lines), state._replace(files=files, driver=after)


def _incremented(state: State, driver: Driver, read: tuple[int, ...]) -> Move:
    windows = {window_of(line) for line in read}
    after = reopened(state, windows)
    rows = tuple(
        tuple(sorted((*rows, *(line for line in read if window_of(line) == window))))
        for window, rows in enumerate(state.ledger.rows)
    )
    listed = tuple(state.ledger.listed[window] or window in windows for window in WINDOWS)
    ledger = after.ledger._replace(rows=rows, listed=listed)
    return Action(Event.INCREMENTED), after._replace(ledger=ledger, driver=driver._replace(step="land"))


def _landed(scenario: Scenario, state: State, driver: Driver) -> Move:
    """Landings and, in the same transaction, the offset of a store inside; a refill moves no offset."""
    rules = scenario.rules
    after = accounted(scenario, state, driver.appended, compares=rules.landing_compares)
    if after.ledger.diverged:
        unread = tuple(offset for offset in after.ledger.diverged if not driver.start <= offset < driver.end)
        after = after._replace(ledger=after.ledger._replace(diverged=unread))
    rest: Driver | None = None
    if scenario.stored_inside and not driver.refill:
        after = after._replace(ledger=after.ledger._replace(stored=driver.end))
    elif not driver.refill:
        rest = Driver("commit", driver.start, driver.end, False, None, ())
    return Action(Event.LANDED, offset=driver.start, end=driver.end), after._replace(driver=rest)
