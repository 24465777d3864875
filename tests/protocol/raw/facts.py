"""What follows from a state: what has landed, frontier and hole, which windows are closed, where a log was cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from tests.protocol.raw.lines import (
    FOREIGN,
    OFFSETS,
    QUARANTINE,
    TAG,
    WINDOWS,
    Line,
    Lines,
    Record,
    record_of,
    window_of,
)
from tests.protocol.raw.state import Batch, Ledger, Partition, Scenario, State


@lru_cache(None)
def landed(batches: tuple[Batch, ...]) -> frozenset[Line]:
    return frozenset(line for batch in batches for landing in batch for line in landing.lines)


@lru_cache(None)
def landed_in(batches: tuple[Batch, ...], window: int) -> frozenset[Line]:
    return frozenset(
        line for batch in batches for landing in batch if landing.window == window for line in landing.lines
    )


def is_read(lines: frozenset[Line], known: Partition, record: Record) -> bool:
    """Whether what the log holds under this offset, as far as the ledger knows, has landed."""
    return record * 2 + 1 in lines or (record * 2 in lines and record % OFFSETS < known.cut)


def ever_landed(ledger: Ledger) -> frozenset[Line]:
    """What has landed, of deleted landings too."""
    return landed(ledger.batches).union(ledger.deleted) if ledger.deleted else landed(ledger.batches)


@lru_cache(None)
def _frontier(partition: int, known: Partition, lines: frozenset[Line], unread: tuple[Record, ...]) -> int:
    first, at = partition * OFFSETS, known.origin
    while at < OFFSETS and (is_read(lines, known, first + at) or first + at in unread):
        at += 1
    return at


def frontier(ledger: Ledger, partition: int) -> int:
    if not ledger.known:
        return -1
    known = ledger.partitions[partition]._replace(reach=0, stored=None)  # which it does not depend on
    return _frontier(partition, known, ever_landed(ledger), ledger.unread)


def hole(ledger: Ledger) -> list[Record]:
    """The records that were to be read and have not landed, of all Kafka partitions."""
    lines = ever_landed(ledger)
    return [
        record
        for partition, known in enumerate(ledger.partitions)
        for record in range(partition * OFFSETS + known.origin, partition * OFFSETS + known.reach)
        if not is_read(lines, known, record) and record not in ledger.unread
    ]


def owns_root(scenario: Scenario, state: State) -> bool:
    return not scenario.rules.marker or state.marker == state.ledger.ledger_id


def is_behind(scenario: Scenario, state: State) -> bool:
    """Whether the ledger was restored from before an upgrade: it does not know what the newer version began."""
    return scenario.rules.versions_in_raw and state.ledger.known and state.upgraded and not state.ledger.upgraded


def may_work(scenario: Scenario, state: State) -> bool:
    return state.ledger.known and owns_root(scenario, state) and not state.rebuilding and not is_behind(scenario, state)


def is_closed(scenario: Scenario, state: State, window: int) -> bool:
    """A window closes once each frontier has passed it, or its Kafka partition is read to its end and idle; it stays
    closed."""
    ledger = state.ledger
    if ledger.certificates[window]:
        return True
    if not ledger.known or not (any(state.files) or any(log.epochs for log in state.logs)):
        return False
    return all(
        (at := frontier(ledger, partition)) >= scenario.closes(partition, window) or at >= log.end
        for partition, log in enumerate(state.logs)
    )


def cut_at(scenario: Scenario, state: State, partition: int) -> int | None:
    """The first landed offset under which the log holds another epoch, or its end where more was read."""
    if not scenario.rules.epochs:
        return None
    log, known, first = state.logs[partition], state.ledger.partitions[partition], partition * OFFSETS
    lines = ever_landed(state.ledger)
    for offset in range(log.start, log.end):
        record = first + offset
        if is_read(lines, known, record) and record * 2 + (log.epochs[offset] or 0) not in lines:
            return offset
    return log.end if state.ledger.known and log.end < known.reach else None


def has_cut(scenario: Scenario, state: State) -> bool:
    return any(cut_at(scenario, state, partition) is not None for partition in range(len(state.logs)))


def evaluated_window(scenario: Scenario, state: State, line: Line) -> int:
    """The window that this version dates a line into, or quarantine."""
    if record_of(line) == scenario.quarantined:
        return QUARANTINE
    return 1 - window_of(line) if state.upgraded and record_of(line) == scenario.moved else window_of(line)


@lru_cache(None)
def intact(scenario: Scenario, lines: Lines) -> frozenset[Line]:
    """The distinct lines of a file that may count, without their tags."""
    return frozenset(
        line & ~TAG if line >= 0 else line
        for line in lines
        if line >= 0 or (line == FOREIGN and not scenario.rules.own)
    )


def tagged(state: State, lines: Iterable[Line]) -> Lines:
    """As this version writes them."""
    return tuple(line | TAG if state.upgraded else line for line in lines)


def asks_for_decision(scenario: Scenario, ledger: Ledger, file: Lines, line: Line) -> bool:
    """Whether two versions evaluated a line that landed nowhere: each may have put it elsewhere."""
    record = record_of(line)
    tags = {tag for tag, records in ledger.begun if record in records}
    tags |= {found & TAG > 0 for found in file if found >= 0 and found & ~TAG == line}
    return scenario.rules.two_versions and len(tags) > 1 and record not in dict(ledger.decisions)


def expected_length(ledger: Ledger, window: int) -> int:
    """The certificate's frozen length and all landings since that begin at or beyond it."""
    certificate = ledger.certificates[window]
    first, length = (certificate.batches, certificate.length) if certificate else (0, 0)
    return length + sum(
        landing.length
        for batch in ledger.batches[first:]
        for landing in batch
        if landing.window == window and landing.byte_start >= length
    )


def by_window(scenario: Scenario, state: State, lines: Lines) -> Iterator[tuple[int, Lines]]:
    """Yield each window of the lines with its own, as a batch appends them."""
    for window in (*WINDOWS, QUARANTINE):
        if own := tuple(line for line in lines if evaluated_window(scenario, state, line) == window):
            yield window, own


def is_under_way(scenario: Scenario, state: State, records: Iterable[Record]) -> bool:
    """Whether a begun batch of the living driver covers one of them."""
    driver = state.driver
    if not scenario.rules.wait or driver is None or driver.step == "commit":
        return False
    return any(record in driver.records for record in records)


def lost_lines(scenario: Scenario, state: State, window: int) -> list[Line]:
    """What landed or was certified in the window, and its file has no more; but for what a person gave up."""
    ledger, certificate = state.ledger, state.ledger.certificates[window]
    own = landed_in(ledger.batches, window)
    known = own | frozenset(certificate.lines if certificate else ())
    gone = known - intact(scenario, state.files[window]) - frozenset(ledger.given_up)
    return sorted(gone - (ever_landed(ledger) - own))


def in_log(state: State, record: Record) -> bool:
    return state.logs[record // OFFSETS].has(record % OFFSETS)
