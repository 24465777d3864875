"""Detection that records cuts, lists files and certifies from the ledger; a person who accepts what was never read."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import asks_for_decision, has_cut, hole, is_closed, lost_lines, tagged
from tests.protocol.raw.findings import is_certified, is_clean
from tests.protocol.raw.lines import OFFSETS, TAG, WINDOWS, Record, record_of
from tests.protocol.raw.state import Certificate, Move, Scenario, State, put
from tests.protocol.raw.transactions import cut_recorded, reopened


def detection_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    ledger = state.ledger
    if scenario.rules.see_cut and state.driver is None and has_cut(scenario, state):
        yield Action(Event.CUT_SEEN), cut_recorded(scenario, state)
    for window in WINDOWS:
        if not ledger.listed[window]:
            if scenario.rules.listing and (state.files[window] or ledger.rows[window]):
                listed = ledger._replace(listed=put(ledger.listed, window, True))
                yield Action(Event.LISTED, window), state._replace(ledger=listed)
        elif (
            not state.expired[window]
            and is_closed(scenario, state, window)
            and not is_certified(state, window)
            and is_clean(scenario, state, window)
        ):
            yield _certified(state, window)


def _certified(state: State, window: int) -> Move:
    """Certify from the ledger alone: the extras of the last certificate still count."""
    ledger, lines = state.ledger, state.ledger.rows[window]
    before = ledger.certificates[window]
    certificate = Certificate(len(ledger.batches), len(state.files[window]), lines, True, (), ledger.unread)
    if before:
        certificate = certificate._replace(extras=before.extras, strays=before.strays, base=before.base)
    certificate = certificate._replace(given_up=ledger.given_up)
    after = ledger._replace(certificates=put(ledger.certificates, window, certificate))
    return Action(Event.CERTIFIED, window, lines=lines), state._replace(ledger=after)


def person_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Only what is below the log's start can never be read any more, and is asked about."""
    for record in hole(state.ledger):
        if record % OFFSETS < state.logs[record // OFFSETS].start:
            after = reopened(state, WINDOWS)
            unread = tuple(sorted((*after.ledger.unread, record)))
            yield Action(Event.ACCEPTED, record=record), after._replace(ledger=after.ledger._replace(unread=unread))
    if scenario.left.file_losses:
        yield from _lost(scenario, state)
    for record in state.ledger.unread:
        window = _newest_window(state, record)
        files = state.files[0] + state.files[1]
        if window is not None and asks_for_decision(scenario, state.ledger, files, record * 2):
            yield Action(Event.DECIDED, window, record), _decided(state, record, window)


def _lost(scenario: Scenario, state: State) -> Iterator[Move]:
    """What a window has lost is read again from Kafka, for that window alone, or given up once Kafka lacks it too."""
    for window in WINDOWS:
        lost = lost_lines(scenario, state, window)
        if not lost or state.expired[window] or not is_closed(scenario, state, window):
            continue
        held = tuple(line for line in lost if line == state.held_at(record_of(line)))
        after = reopened(state, {window})
        if held and not state.driver:
            files = put(state.files, window, state.files[window] + tagged(state, held))
            yield Action(Event.READ_AGAIN, window, lines=held), after._replace(files=files)
        if not held or not scenario.rules.give_up_last:
            given_up = tuple(sorted({*state.ledger.given_up, *lost}))
            gone = after._replace(ledger=after.ledger._replace(given_up=given_up))
            yield Action(Event.GIVEN_UP, window, lines=tuple(lost)), gone


def _newest_window(state: State, record: Record) -> int | None:
    """Where the newest version that appended the record put it."""
    for tag in (TAG, 0):
        for window in WINDOWS:
            if any(line >= 0 and line & TAG == tag and record_of(line) == record for line in state.files[window]):
                return window
    return None


def _decided(state: State, record: Record, window: int) -> State:
    after = reopened(state, WINDOWS)
    decisions = (*after.ledger.decisions, (record, window))
    return after._replace(ledger=after.ledger._replace(decisions=decisions))
