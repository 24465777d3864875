"""What an audit of one window finds in the ledger, file lengths, Kafka's bounds and epochs. It reads no line of raw."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.raw.facts import expected_length, has_cut
from tests.protocol.raw.lines import record_of
from tests.protocol.raw.state import Certificate, Scenario, State

NEVER_CERTIFIED = Certificate(0, 0, (), False, (), ())


def findings(scenario: Scenario, state: State, window: int) -> Iterator[str]:
    ledger, rules = state.ledger, scenario.rules
    certificate = ledger.certificates[window] or NEVER_CERTIFIED
    since = [landing for batch in ledger.batches[certificate.batches :] for landing in batch]
    new = [line for landing in since if landing.window == window for line in landing.lines]
    length, expected = len(state.files[window]), expected_length(ledger, window)
    if length < expected:
        yield "missing bytes"
    if length > expected and rules.length:
        yield "unaccounted bytes"
    if tuple(sorted((*certificate.lines, *new))) != ledger.rows[window]:
        yield "aggregate mismatch"
    ranged = [line for line in certificate.lines if line not in ledger.deleted] + new
    if len(set(ranged)) < len(ranged):
        yield "duplicated"
    if rules.deleted_reopens and any(line in ledger.deleted for line in new):
        yield "landed again after its landing was deleted"
    if rules.reopen and any(record_of(line) in certificate.extras for landing in since for line in landing.lines):
        yield "an extra has landed"
    if any(record in certificate.extras and decided != window for record, decided in ledger.decisions):
        yield "an extra was decided to count elsewhere"
    if rules.cut_first and has_cut(scenario, state):
        yield "log was cut"


def is_clean(scenario: Scenario, state: State, window: int) -> bool:
    return next(findings(scenario, state, window), None) is None


def is_certified(state: State, window: int) -> bool:
    certificate = state.ledger.certificates[window]
    return certificate is not None and certificate.valid and not state.expired[window]
