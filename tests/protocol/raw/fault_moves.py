"""Faults, and the producer: expiry, a cut log, a lost or restored ledger, a driver that crashes, an upgrade."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import by_window, tagged
from tests.protocol.raw.lines import FOREIGN, FRAGMENT, OFFSETS, WINDOWS
from tests.protocol.raw.state import Log, Move, Scenario, State, put


def kafka_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """A record is produced, a log expires up to an offset, or it comes back shorter and in another epoch."""
    left = state.left
    for partition, log in enumerate(state.logs):
        first = partition * OFFSETS
        if log.end < scenario.records[partition]:
            epoch = log.leader_epoch
            longer = log._replace(epochs=(*log.epochs, epoch), last=(*log.last[: log.end], epoch))
            yield Action(Event.PRODUCED, lines=((first + log.end) * 2 + epoch,)), _with(state, partition, longer)
        if left.expiries:
            spent = state._replace(left=left._replace(expiries=left.expiries - 1))
            for at in range(log.start + 1, log.end + 1):
                shorter = log._replace(start=at, epochs=(None,) * at + log.epochs[at:])
                yield Action(Event.EXPIRED, record=first + at), _with(spent, partition, shorter)
        if left.cuts:
            spent = state._replace(left=left._replace(cuts=left.cuts - 1))
            for at in range(log.start, log.end):
                cut = Log(log.start, log.epochs[:at], 1, log.last[:at])
                yield Action(Event.CUT, record=first + at), _with(spent, partition, cut)


def _with(state: State, partition: int, log: Log) -> State:
    return state._replace(logs=put(state.logs, partition, log))


def ledger_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """The database is lost, backed up or restored. What held an epoch or a claim is fenced, unless counters repeat."""
    ledger, left = state.ledger, state.left
    fenced = state._replace(rebuilding=False)
    if scenario.rules.fence:
        fenced = fenced._replace(driver=None, repair=None, releasing=None)
    if left.losses:
        empty = ledger.replaced()
        if scenario.rows_survive:
            empty = empty._replace(rows=ledger.rows)
        lost = fenced._replace(ledger=empty, left=left._replace(losses=left.losses - 1))
        if not scenario.rules.expired_in_raw:
            lost = lost._replace(expired=(False, False))
        yield Action(Event.LEDGER_LOST), lost
    if left.restores:
        if state.backup is None and ledger.known:
            yield Action(Event.BACKED_UP), state._replace(backup=ledger)
        elif state.backup is not None and state.backup != ledger:
            spent = left._replace(restores=left.restores - 1)
            yield Action(Event.RESTORED), fenced._replace(ledger=state.backup, backup=None, left=spent)


def driver_faults(scenario: Scenario, state: State) -> Iterator[Move]:
    """The driver crashes, also halfway through an append, or hangs and is superseded: then it may still append."""
    driver, left = state.driver, state.left
    if driver and left.crashes:
        spent = left._replace(crashes=left.crashes - 1)
        yield Action(Event.CRASHED), state._replace(driver=None, left=spent)
        if driver.step == "append" and driver.read is not None:
            window, lines = list(by_window(scenario, state, driver.read))[len(driver.appended)]
            for count in range(len(lines)):
                files = put(state.files, window, (*state.files[window], *tagged(state, lines[:count]), FRAGMENT))
                torn = state._replace(files=files, driver=None, left=spent)
                yield Action(Event.TORN, window, lines=lines[:count]), torn
    if driver and left.takeovers and driver.step == "append" and driver.read is not None:
        pending = tuple(by_window(scenario, state, driver.read))[len(driver.appended) :]
        hung = tuple((window, tagged(state, lines)) for window, lines in pending)
        spent = left._replace(takeovers=left.takeovers - 1)
        yield Action(Event.TAKEN_OVER), state._replace(driver=None, hung=hung, left=spent)
    if state.releasing and left.crashes:
        spent = left._replace(crashes=left.crashes - 1)
        yield Action(Event.RELEASE_KILLED), state._replace(releasing=None, left=spent)
    if state.hung:
        (window, lines), *rest = state.hung
        files = put(state.files, window, state.files[window] + lines)
        yield Action(Event.APPENDED_LATE, window, lines=lines), state._replace(files=files, hung=tuple(rest))


def file_moves(state: State) -> Iterator[Move]:
    """A file is lost whole. (Where as many bytes come back unaccounted for, only reading it shows that.)"""
    left = state.left
    if left.file_losses and not state.driver and not state.repair:
        for window in WINDOWS:
            if state.files[window]:
                lost = put(state.lost, window, state.files[window])
                spent = left._replace(file_losses=left.file_losses - 1)
                gone = state._replace(files=put(state.files, window, ()), lost=lost, left=spent)
                yield Action(Event.FILE_LOST, window), gone


def foreign_moves(state: State) -> Iterator[Move]:
    """Another environment or a restored topic appends to a file of this root."""
    left = state.left
    if left.foreign and state.origins is not None and any(log.epochs for log in state.logs):
        files = put(state.files, 0, (*state.files[0], FOREIGN))
        spent = left._replace(foreign=left.foreign - 1)
        yield Action(Event.FOREIGN_APPENDED, 0), state._replace(files=files, left=spent)


def upgrade_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Another version of Onceover, Spark or the time zone data starts, and dates one record otherwise."""
    left = state.left
    if left.upgrades and state.driver is None:
        ledger = state.ledger._replace(upgraded=True)
        upgraded = state._replace(upgraded=True, ledger=ledger, left=left._replace(upgrades=left.upgrades - 1))
        yield Action(Event.UPGRADED, record=scenario.moved), upgraded
