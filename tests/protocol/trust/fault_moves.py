"""Faults, and the producer: expiry, a cut log, a lost or restored ledger, a driver that crashes or hangs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import by_window, bytes_are_accounted, lost_unread
from tests.protocol.trust.findings import is_certified
from tests.protocol.trust.state import FOREIGN, WINDOWS, Action, Event, Ledger, Move, Scenario, State, put, window_of


def kafka_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """A record is produced, the log expires up to an offset, or it comes back shorter and in another epoch."""
    start, end, left = state.log_start, state.log_end, state.left
    if end < scenario.records:
        epoch = state.leader_epoch
        yield Action(Event.PRODUCED, lines=(end * 2 + epoch,)), state._replace(log=(*state.log, epoch))
    if left.expiries:
        spent = left._replace(expiries=left.expiries - 1)
        for at in range(start + 1, end + 1):
            after = state._replace(log_start=at, log=(None,) * at + state.log[at:], left=spent)
            if state.ledger.diverged and not spent.expiries:  # what the log still has is not lost any more
                after = after._replace(ledger=after.ledger._replace(diverged=tuple(lost_unread(after))))
            yield Action(Event.EXPIRED, offset=at), after
    if left.cuts:
        spent = left._replace(cuts=left.cuts - 1)
        kept = state.log if left.returns else None
        for at in range(start, end):
            cut = state._replace(log=state.log[:at], leader_epoch=1, left=spent, before_cut=kept)
            yield Action(Event.CUT, offset=at), cut
    if left.returns and state.before_cut is not None:
        spent = left._replace(returns=left.returns - 1)
        back = state._replace(log=state.before_cut, leader_epoch=0, left=spent, before_cut=None)
        yield Action(Event.BACK), back


def ledger_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """The database is lost, backed up or restored. What held an epoch or a claim is fenced, unless counters repeat."""
    ledger, left = state.ledger, state.left
    fenced = state._replace(rebuilding=False)
    if scenario.rules.fence:
        fenced = fenced._replace(driver=None, repair=None)
    if left.losses:
        empty = Ledger(ledger.ledger_id + 1)
        if scenario.rows_survive:
            empty = empty._replace(rows=ledger.rows)
        yield Action(Event.LEDGER_LOST), fenced._replace(ledger=empty, left=left._replace(losses=left.losses - 1))
    if left.restores:
        if state.backup is None and ledger.known:
            yield Action(Event.BACKED_UP), state._replace(backup=ledger)
        elif state.backup is not None and state.backup != ledger:
            spent = left._replace(restores=left.restores - 1)
            yield Action(Event.RESTORED), fenced._replace(ledger=state.backup, backup=None, left=spent)


def retention_moves(state: State) -> Iterator[Move]:
    """The driver takes away the raw of a certified window, between two batches. Its lines stay in `files`, so that
    lengths count on: what is taken is what the certificate covers, and the certificate is the window's last."""
    if not state.left.retentions or state.driver:
        return
    left = state.left._replace(retentions=state.left.retentions - 1)
    for window in WINDOWS:
        certificate = state.ledger.certificates[window]
        if (
            certificate
            and not certificate.pending
            and is_certified(state, window)
            and bytes_are_accounted(state, window)
        ):
            ledger = state.ledger._replace(expired=put(state.ledger.expired, window, True))
            yield Action(Event.RAW_EXPIRED, window), state._replace(ledger=ledger, left=left)


def file_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """A file is lost, or a person moves it away by mistake and puts it back, in front of what was appended since. The
    audit cannot see that of a file whose lines never landed. A line of another log may be in any file."""
    left = state.left
    if (left.moves or left.file_losses) and not state.driver and not state.repair:
        did, spent = Event.MOVED, left._replace(moves=left.moves - 1)
        if left.file_losses:
            did, spent = Event.FILE_LOST, left._replace(file_losses=left.file_losses - 1)
        for window in WINDOWS:
            if (lines := state.files[window]) and bytes_are_accounted(state, window):
                gone = state._replace(files=put(state.files, window, ()), away=(window, lines), left=spent)
                yield Action(did, window), gone
    if left.foreign and state.marker and state.log:  # a window of a topic without any record never closes
        window = window_of(FOREIGN)
        files = put(state.files, window, (*state.files[window], FOREIGN))
        appended = state._replace(files=files, left=left._replace(foreign=left.foreign - 1))
        yield Action(Event.FOREIGN_APPENDED, window, lines=(FOREIGN,)), appended
    if state.away and scenario.left.moves:
        window, lines = state.away
        files = put(state.files, window, lines + state.files[window])
        yield Action(Event.PUT_BACK, window), state._replace(files=files, away=None)


def driver_faults(state: State) -> Iterator[Move]:
    """The driver crashes, also halfway through an append, or hangs and is superseded: then it may still append."""
    driver, left = state.driver, state.left
    if driver and left.crashes:
        spent = left._replace(crashes=left.crashes - 1)
        yield Action(Event.CRASHED), state._replace(driver=None, left=spent)
        if driver.step == "append" and driver.read is not None:
            window, lines = list(by_window(driver.read))[len(driver.appended)]
            for count in range(1, len(lines)):
                files = put(state.files, window, state.files[window] + lines[:count])
                torn = state._replace(files=files, driver=None, left=spent)
                yield Action(Event.TORN, window, lines=lines[:count]), torn
    if driver and left.takeovers and driver.step == "append" and driver.read is not None:
        hung = tuple(by_window(driver.read))[len(driver.appended) :]
        spent = left._replace(takeovers=left.takeovers - 1)
        yield Action(Event.TAKEN_OVER), state._replace(driver=None, hung=hung, left=spent)
    if state.hung:
        (window, lines), *rest = state.hung
        files = put(state.files, window, state.files[window] + lines)
        yield Action(Event.APPENDED_LATE, window, lines=lines), state._replace(files=files, hung=tuple(rest))
