"""When a certificate is right, without the ledger's accounts, and the goal that every state must be able to reach.

F is the frontier, `born` the first offset that was ever to be read. Raw holds the contents of an offset that are intact
lines of any window file, Kafka the one that its log has now. A certified window whose audit is clean is right if for
each offset from `born` on:

1. at or beyond F and in the log: it will be read; the window counts it at most once.
2. else, held by neither: the window does not count it, and if it is below F the certificate states it lost.
3. else, one content is held: the window counts it exactly once if it is its own, else not at all, and the certificate
   does not state it lost.
4. else, two contents are held: if a person decided, 3 is true of the chosen one and the other is not counted; if not,
   at least one of their windows is not certified or has a finding. (Only a file shows a content that never landed:
   until that file's bytes are read, the other window cannot know.)
5. the log had another record there, which a plan saw, and lost it before it was read: the certificate states that.

A line of another log is never counted. A file that was moved away still counts as raw: a person puts it back.
A window whose raw has expired is not certified any more; what retention took still counts as held by raw, and so does
what a lost file held. A person gives up its window only once Kafka has none of that.

Where a superseded driver may append, 3 excuses a stated loss for as long as the window of that line is not certified or
has a finding, for the same reason as 4: only its file shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import frontier, hole, lost_lines, lost_unread, owns_root
from tests.protocol.trust.findings import is_certified, is_clean
from tests.protocol.trust.state import FOREIGN, WINDOWS, Certificate, Lines, Scenario, State, shown, window_of


def wrong(scenario: Scenario, state: State) -> str | None:
    """Say which window is certified, audited clean and not right."""
    if not state.ledger.known or not owns_root(scenario, state):
        return None
    if scenario.left.file_losses:
        for window, is_expired in enumerate(state.ledger.expired):
            lost = lost_lines(state, window) if is_expired else ()
            if any(line == state.line_at(line >> 1) for line in lost):
                return f"W{window} is given up, and Kafka holds what it lacks"
    for window in WINDOWS:
        certificate = state.ledger.certificates[window]
        if certificate and is_trusted(scenario, state, window):
            for message in _wrong(scenario, state, window, certificate):
                return f"W{window} is certified and audited clean: {message}"
    return None


def is_trusted(scenario: Scenario, state: State, window: int) -> bool:
    return is_certified(state, window) and is_clean(scenario, state, window)


def _wrong(scenario: Scenario, state: State, window: int, certificate: Certificate) -> Iterator[str]:
    ledger, first = state.ledger, frontier(state.ledger)
    rows, decided = ledger.rows[window], dict(ledger.decisions)
    raw = {line for file in state.files for line in file}
    if state.away:
        raw.update(state.away[1])
    assert state.born is not None
    if FOREIGN in rows:
        yield "a line of another log is counted"
    for offset in (*lost_unread(state), *ledger.overwritten) if ledger.diverged or ledger.overwritten else ():
        if offset not in certificate.overwritten and offset * 2 + 1 not in raw:
            yield f"{offset} had another record, which is lost, and this is not stated"
    for offset in range(state.born, scenario.records):
        counts = (rows.count(offset * 2), rows.count(offset * 2 + 1))
        if offset >= first and state.in_log(offset):
            if sum(counts) > 1:
                yield f"{offset} is counted {sum(counts)} times"
            continue
        in_log = state.line_at(offset)
        held = tuple(line for line in (offset * 2, offset * 2 + 1) if line in raw or line == in_log)
        if not held:
            if sum(counts):
                yield f"{offset} is counted, and held by neither raw nor Kafka"
            if offset < first and offset not in certificate.losses:
                yield f"{offset} is held by neither raw nor Kafka, and is not stated as lost"
            continue
        if offset in certificate.losses and not _is_excused(scenario, state, held):
            yield f"{offset} is stated as lost, and held"
        if len(held) == 2 and offset not in decided:
            of = {window_of(line) for line in held}
            if window in of and all(is_trusted(scenario, state, other) for other in of):
                yield f"{offset} has two contents, and no person decided"
            continue
        chosen = decided[offset] if len(held) == 2 else held[0]
        if counts[chosen & 1] != (window_of(chosen) == window):
            yield f"{shown((chosen,))} is held and counted {counts[chosen & 1]} times"
        if counts[1 - (chosen & 1)]:
            yield f"{shown((chosen ^ 1,))} is counted"


def _is_excused(scenario: Scenario, state: State, held: Lines) -> bool:
    """Only the file of a window that is not trusted holds the line, which a superseded driver may have appended."""
    return bool(scenario.left.takeovers) and not any(
        line == state.line_at(line >> 1) or is_trusted(scenario, state, window_of(line)) for line in held
    )


def is_goal(scenario: Scenario, state: State) -> bool:
    """All is read, no hole is left, and each window with a file or rows is certified and audited clean. The frontier
    is the log's end here, so `wrong` has no grace at all."""
    ledger = state.ledger
    if not ledger.known or not owns_root(scenario, state) or hole(ledger):
        return False
    if state.driver or state.repair or state.rebuilding or frontier(ledger) < len(state.log):
        return False
    return all(
        is_trusted(scenario, state, window) or ledger.expired[window]
        for window in WINDOWS
        if state.files[window] or ledger.rows[window]
    )
