"""The driver: plan, read, append, increment, land, commit its offsets."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import by_window, cut_at, frontier, has_cut, hole, in_log, may_work, tagged
from tests.protocol.raw.lines import OFFSETS, WINDOWS, Lines, Record
from tests.protocol.raw.root_moves import asked_offset
from tests.protocol.raw.state import Driver, Landing, Move, Scenario, State, put
from tests.protocol.raw.transactions import accounted, cut_recorded, reopened


def ingest_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    if state.driver:
        yield _next_step(scenario, state, state.driver)
    elif may_work(scenario, state):
        yield from _planned(scenario, state)


def _planned(scenario: Scenario, state: State) -> Iterator[Move]:
    """Read on from the stored offset, again from where the log was cut; what a hole lacks goes first."""
    after = cut_recorded(scenario, state) if has_cut(scenario, state) else state
    records: list[Record] = []
    for partition, log in enumerate(state.logs):
        at = _first_to_read(scenario, state, partition)
        known = after.ledger.partitions[partition]
        if at > known.reach:
            partitions = put(after.ledger.partitions, partition, known._replace(reach=at))
            after = after._replace(ledger=after.ledger._replace(partitions=partitions))
        records += range(partition * OFFSETS + at, partition * OFFSETS + log.end)
    missing = [record for record in hole(after.ledger) if in_log(state, record)]
    if missing:
        driver = Driver("append", _first_run(missing), True, None, ())
        yield Action(Event.HOLE_PLANNED, record=missing[0]), _begun(scenario, after, driver)
    elif records:
        driver = Driver("append", tuple(records), False, None, ())
        yield Action(Event.PLANNED, record=records[0]), _begun(scenario, after, driver)
    elif after != state:
        yield Action(Event.LOOKED_AHEAD), after


def _begun(scenario: Scenario, state: State, driver: Driver) -> State:
    ledger = state.ledger
    if scenario.left.upgrades:  # else nothing depends on what never landed
        ledger = ledger._replace(begun=tuple(sorted({*ledger.begun, (state.upgraded, driver.records)})))
    return state._replace(ledger=ledger, driver=driver)


def _first_to_read(scenario: Scenario, state: State, partition: int) -> int:
    log = state.logs[partition]
    at = max(asked_offset(scenario, state, partition), log.start)
    if scenario.rules.upgrade and state.upgraded:
        at = max(at, frontier(state.ledger, partition))
    at, cut = min(at, log.end), cut_at(scenario, state, partition)
    return at if cut is None else max(min(at, cut), log.start)


def _first_run(records: list[Record]) -> tuple[Record, ...]:
    count = 1
    while count < len(records) and records[count] == records[0] + count:
        count += 1
    return tuple(records[:count])


def _next_step(scenario: Scenario, state: State, driver: Driver) -> Move:
    if driver.step == "append":
        return _read(state, driver) if driver.read is None else _appended(scenario, state, driver, driver.read)
    if driver.step == "increment":
        return _incremented(scenario, state, driver, driver.read or ())
    if driver.step == "land":
        return _landed(scenario, state, driver)
    stored = state.stored
    for partition, end in _ends(driver).items():
        stored = put(stored, partition, end)
    return Action(Event.STORED), state._replace(stored=stored, driver=None)


def _read(state: State, driver: Driver) -> Move:
    found = tuple(line for record in driver.records if (line := state.held_at(record)) is not None)
    if len(found) < len(driver.records):
        return Action(Event.READ_FAILED), state._replace(driver=None)
    return Action(Event.READ, lines=found), state._replace(driver=driver._replace(read=found))


def _appended(scenario: Scenario, state: State, driver: Driver, read: Lines) -> Move:
    groups = list(by_window(scenario, state, read))
    window, lines = groups[len(driver.appended)]
    appended = (*driver.appended, Landing(window, len(state.files[window]), len(lines), lines))
    after = driver._replace(step="increment" if len(appended) == len(groups) else "append", appended=appended)
    files = put(state.files, window, state.files[window] + tagged(state, lines))
    return Action(Event.APPENDED, window, lines=lines), state._replace(files=files, driver=after)


def _incremented(scenario: Scenario, state: State, driver: Driver, read: Lines) -> Move:
    groups = dict(by_window(scenario, state, read))
    after = reopened(state, groups.keys() & set(WINDOWS))
    rows = tuple(tuple(sorted((*rows, *groups.get(window, ())))) for window, rows in enumerate(state.ledger.rows))
    listed = tuple(state.ledger.listed[window] or window in groups for window in WINDOWS)
    ledger = after.ledger._replace(rows=rows, listed=listed)
    return Action(Event.INCREMENTED), after._replace(ledger=ledger, driver=driver._replace(step="land"))


def _landed(scenario: Scenario, state: State, driver: Driver) -> Move:
    """Landings and, in the same transaction, the offsets of a store inside; what is read again moves no offset."""
    after, rest = accounted(state, driver.appended), None
    begun = tuple(each for each in after.ledger.begun if each != (state.upgraded, driver.records))
    after = after._replace(ledger=after.ledger._replace(begun=begun))
    if scenario.stored_inside and not driver.again:
        partitions = after.ledger.partitions
        for partition, end in _ends(driver).items():
            partitions = put(partitions, partition, partitions[partition]._replace(stored=end))
        after = after._replace(ledger=after.ledger._replace(partitions=partitions))
    elif not driver.again:
        rest = Driver("commit", driver.records, False, None, ())
    return Action(Event.LANDED, record=driver.records[0]), after._replace(driver=rest)


def _ends(driver: Driver) -> dict[int, int]:
    return {record // OFFSETS: record % OFFSETS + 1 for record in driver.records}
