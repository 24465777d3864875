"""When a certificate is right, without the ledger's accounts, and the goal that every state must be able to reach.

F is the frontier, `born` the first offset that was ever to be read. A line is held if a window file has it intact, or
Kafka's log holds it now. The current line of an offset is the one that the log holds or last held there. A certified
window of which an audit finds nothing is right if for each line of an offset from `born` on:

1. Kafka holds it at or beyond F: it will be read; the window counts it at most once.
2. else it is held: the window counts it exactly once if it belongs to it, else not at all. (An upgrade may date it
   otherwise: then once in all, in one of the two.)
3. else the window does not count it; and if it is its offset's current line below F, the certificate names the offset
   as unread, or the line as given up if raw lost it with the window's file. Out of reach: what was written after a cut
   and expired before it was looked at: no part can know of it.

Besides, as long as no fault has happened, no rows ever count a record twice.
"""

from __future__ import annotations

from tests.protocol.raw.facts import ever_landed, frontier, has_cut, hole, may_work
from tests.protocol.raw.findings import is_certified, is_clean
from tests.protocol.raw.lines import OFFSETS, RELEASED, TAG, WINDOWS, Line, record_of, shown, window_of
from tests.protocol.raw.state import Certificate, Scenario, State


def wrong(scenario: Scenario, state: State) -> str | None:
    """Say which window is certified, audited clean and not right."""
    if state.left == scenario.left and any(len(set(rows)) < len(rows) for rows in state.ledger.rows):
        return "rows count a record twice without any fault"
    if not may_work(scenario, state):
        return None
    for window in WINDOWS:
        certificate = state.ledger.certificates[window]
        if certificate and is_trusted(scenario, state, window):
            if any(line < 0 for line in state.ledger.rows[window]):
                return f"W{window} is certified and audited clean: it counts a line of another log"
            if message := _wrong_release(scenario, state):
                return f"W{window} is certified and audited clean: {message}"
            for line in _lines_to_judge(scenario, state):
                if message := _wrong(scenario, state, window, certificate, line):
                    return f"W{window} is certified and audited clean: {shown((line,))} {message}"
    return None


def is_trusted(scenario: Scenario, state: State, window: int) -> bool:
    return is_certified(state, window) and is_clean(scenario, state, window)


def _lines_to_judge(scenario: Scenario, state: State) -> list[Line]:
    assert state.born is not None
    return [
        line
        for partition, records in enumerate(scenario.records)
        for offset in range(state.born[partition], records)
        for line in ((partition * OFFSETS + offset) * 2, (partition * OFFSETS + offset) * 2 + 1)
    ]


def _wrong(scenario: Scenario, state: State, window: int, certificate: Certificate, line: Line) -> str | None:
    record, ledger = record_of(line), state.ledger
    partition, offset = record // OFFSETS, record % OFFSETS
    count, first = ledger.rows[window].count(line), frontier(ledger, partition)
    in_kafka = state.held_at(record) == line
    if in_kafka and offset >= first:
        return f"is counted {count} times" if count > 1 else None
    if in_kafka or any(held == line or held == line | TAG for file in (*state.files, *state.taken) for held in file):
        if state.upgraded and record == scenario.moved and record != scenario.quarantined:
            in_all = sum(rows.count(line) for rows in ledger.rows)
            both = all(is_trusted(scenario, state, other) for other in WINDOWS)
            return f"is counted {in_all} times in all" if count > 1 or (both and in_all != 1) else None
        belongs = record != scenario.quarantined and window_of(line) == window
        return f"is held, and counted {count} times" if count != belongs else None
    if count:
        return "is counted, and held nowhere"
    log = state.logs[partition]
    is_current = offset < len(log.last) and log.last[offset] == line & 1
    known = ledger.partitions[partition]
    is_out_of_reach = line & 1 and offset < known.cut and line - 1 in ever_landed(ledger)
    is_named = record in certificate.unread or line in certificate.given_up
    is_of_another = window_of(line) != window and any(line in lost for lost in state.lost)
    if offset < first and is_current and not (is_named or is_out_of_reach or is_of_another):
        return "is held nowhere, and not named as unread"
    return None


def _wrong_release(scenario: Scenario, state: State) -> str | None:
    """A record is released once in all, whatever was killed on the way; or never, if no person asked for that."""
    counts = [line for rows in state.ledger.rows for line in rows if line >= RELEASED]
    if counts and all(is_trusted(scenario, state, other) or not state.ledger.rows[other] for other in WINDOWS):
        return f"{shown(tuple(counts))} is released {len(counts)} times" if len(counts) > 1 else None
    return None


def is_goal(scenario: Scenario, state: State) -> bool:
    """All is read, no hole is left, and each window with a file or rows is certified and audited clean."""
    ledger = state.ledger
    if not may_work(scenario, state) or hole(ledger) or has_cut(scenario, state):
        return False
    if state.driver or state.repair or state.releasing:
        return False
    for partition, log in enumerate(state.logs):
        if frontier(ledger, partition) < log.end:
            return False
    return all(
        is_trusted(scenario, state, window)
        for window in WINDOWS
        if (state.files[window] or ledger.rows[window]) and not state.expired[window]
    )
