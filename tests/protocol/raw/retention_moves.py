"""Retention: the raw of a certified window expires, or its landings are deleted while its raw stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import frontier, landed_in
from tests.protocol.raw.findings import is_certified, is_clean
from tests.protocol.raw.lines import OFFSETS, WINDOWS, Line, record_of
from tests.protocol.raw.state import Base, Move, Scenario, State, put


def retention_moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Only of windows that are certified and clean, between two batches."""
    left = state.left
    if state.driver or not (left.retentions or left.deletions):
        return
    for window in WINDOWS:
        if is_certified(state, window) and is_clean(scenario, state, window):
            if left.retentions:
                yield Action(Event.RAW_EXPIRED, window), _expired(state, window)
            if left.deletions and _may_delete(scenario, state, window):
                yield Action(Event.LANDINGS_DELETED, window), _deleted(state, window)


def _expired(state: State, window: int) -> State:
    return state._replace(
        files=put(state.files, window, ()),
        expired=put(state.expired, window, True),
        taken=put(state.taken, window, state.files[window]),
        left=state.left._replace(retentions=state.left.retentions - 1),
    )


def _may_delete(scenario: Scenario, state: State, window: int) -> bool:
    rules, certificate = scenario.rules, state.ledger.certificates[window]
    assert certificate
    lines = landed_in(state.ledger.batches, window)
    return (
        bool(lines)
        and all(_is_past(state, line) for line in lines)
        and not (rules.delete_own and (certificate.strays or certificate.extras))
        and not (rules.delete_no_extra and _are_extras(state, lines))
    )


def _are_extras(state: State, lines: Iterable[Line]) -> bool:
    """Whether a landing of them is why another window's certificate fails."""
    extras = {record for certificate in state.ledger.certificates if certificate for record in certificate.extras}
    return any(record_of(line) in extras for line in lines)


def _is_past(state: State, line: Line) -> bool:
    """Below the frontier, and gone from Kafka."""
    partition, offset = record_of(line) // OFFSETS, record_of(line) % OFFSETS
    return offset < min(frontier(state.ledger, partition), state.logs[partition].start)


def _deleted(state: State, window: int) -> State:
    """The certificate replaces its landings. A batch without any keeps its place in the order."""
    ledger, certificate = state.ledger, state.ledger.certificates[window]
    assert certificate
    base = Base(certificate.length, certificate.lines)
    deleted = tuple(sorted({*ledger.deleted, *landed_in(ledger.batches, window)}))
    batches = tuple(tuple(landing for landing in batch if landing.window != window) for batch in ledger.batches)
    certificates = put(ledger.certificates, window, certificate._replace(base=base))
    after = ledger._replace(batches=batches, deleted=deleted, certificates=certificates)
    return state._replace(ledger=after, left=state.left._replace(deletions=state.left.deletions - 1))
