"""What an audit of one window finds in the ledger, file lengths, Kafka's bounds and epochs. It reads no line of raw."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import diverged, lost_unread, offsets_of, windows_of
from tests.protocol.trust.state import Certificate, Ledger, Scenario, State

NEVER_CERTIFIED = Certificate(0, 0, (), False, (), (), ())


def findings(scenario: Scenario, state: State, window: int) -> Iterator[str]:
    ledger, rules = state.ledger, scenario.rules
    certificate = ledger.certificates[window] or NEVER_CERTIFIED
    first, length = certificate.batches, certificate.length
    expected, lines, since = length, list(certificate.lines), []
    for at in range(first, len(ledger.batches)):
        for landing in ledger.batches[at]:
            if landing.window == window:
                since.append(at)
                lines += landing.lines
                if landing.byte_start >= length:
                    expected += landing.length
    if len(state.files[window]) > expected and rules.length:
        yield "unaccounted bytes"
    if len(state.files[window]) < expected:
        yield "missing bytes"
    if ledger.unproved[window] or tuple(sorted(lines)) != ledger.rows[window]:
        yield "aggregate mismatch"
    if any(line >> 1 in ledger.suspicions for line in ledger.rows[window]):
        yield "suspected"
    if any(_is_repeated(ledger, window, at) for at in since):
        yield "duplicated"
    if rules.pending:
        for offset in certificate.pending:
            if any(offset in offsets_of(batch) for batch in ledger.batches[first:]):
                yield "pending record has landed"
            elif not state.in_log(offset):
                yield "pending record has expired"
    yield from _of_conflicts(scenario, state, window, certificate, since)
    if ledger.diverged and rules.keep_diverged and lost_unread(state):
        yield "overwritten"
    if cut := diverged(scenario, state):
        landed_beyond = any(
            landing.window == window and any(line >> 1 >= min(cut) for line in landing.lines)
            for batch in ledger.batches
            for landing in batch
        )
        if rules.cut_is_hole or landed_beyond:
            yield "log was cut"


def is_clean(scenario: Scenario, state: State, window: int) -> bool:
    return next(findings(scenario, state, window), None) is None


def is_certified(state: State, window: int) -> bool:
    certificate = state.ledger.certificates[window]
    return certificate is not None and certificate.valid and not state.ledger.expired[window]


def _is_repeated(ledger: Ledger, window: int, at: int) -> bool:
    offsets = offsets_of(ledger.batches[at])
    return any(
        other != at and window in windows_of(batch) and offsets & offsets_of(batch)
        for other, batch in enumerate(ledger.batches)
    )


def _of_conflicts(
    scenario: Scenario, state: State, window: int, certificate: Certificate, since: list[int]
) -> Iterator[str]:
    ledger = state.ledger
    if not ledger.decisions and not ledger.conflicts:
        return
    decided = dict(ledger.decisions)
    if scenario.rules.decided_late and any(
        line >> 1 in decided
        for at in since
        for landing in ledger.batches[at]
        if landing.window == window
        for line in landing.lines
    ):
        yield "landed after a decision"
    for offset, of in ledger.conflicts:
        if of == window:
            if offset not in decided:
                yield "conflict"
            elif (offset, decided[offset]) not in certificate.decisions:
                yield "decided"
