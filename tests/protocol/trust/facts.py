"""What follows from a state: what has landed, frontier and hole, which windows are closed, what a file must hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import MappingProxyType

from tests.protocol.trust.rules import Rules
from tests.protocol.trust.state import WINDOWS, Batch, Ledger, Line, Lines, Offsets, Scenario, State, window_of


@lru_cache(None)
def landed(batches: tuple[Batch, ...]) -> MappingProxyType[int, frozenset[Line]]:
    """Map each landed offset to the lines that landed under it."""
    found: dict[int, set[Line]] = {}
    for batch in batches:
        for line in lines_of(batch):
            found.setdefault(line >> 1, set()).add(line)
    return MappingProxyType({offset: frozenset(lines) for offset, lines in found.items()})


@lru_cache(None)
def lines_of(batch: Batch) -> frozenset[Line]:
    return frozenset(line for landing in batch for line in landing.lines)


@lru_cache(None)
def offsets_of(batch: Batch) -> frozenset[int]:
    return frozenset(line >> 1 for line in lines_of(batch))


@lru_cache(None)
def windows_of(batch: Batch) -> frozenset[int]:
    return frozenset(landing.window for landing in batch)


@lru_cache(None)
def _frontier(origin: int, batches: tuple[Batch, ...], losses: Offsets) -> int:
    known, at = landed(batches), origin
    while at in known or at in losses:
        at += 1
    return at


def frontier(ledger: Ledger) -> int:
    return _frontier(ledger.origin, ledger.batches, ledger.losses) if ledger.known else -1


def hole(ledger: Ledger) -> list[int]:
    known = landed(ledger.batches)
    return [at for at in range(ledger.origin, ledger.reach) if at not in known and at not in ledger.losses]


def owns_root(scenario: Scenario, state: State) -> bool:
    if not scenario.rules.marker:
        return True
    return state.marker is not None and state.marker.ledger_id == state.ledger.ledger_id


def is_closed(scenario: Scenario, state: State, window: int) -> bool:
    """A window closes once the frontier has passed it, or everything is read and the topic is idle."""
    at = frontier(state.ledger)
    return state.ledger.known and (at >= scenario.closes[window] or at >= max(state.log_end, 1))


def diverged(scenario: Scenario, state: State) -> list[int]:
    """Offsets that landed with another content than Kafka holds now: by leader epochs, by content where they are not
    known. What landed last counts."""
    rules, ledger = scenario.rules, state.ledger
    if not rules.epochs:
        return []
    decided = {offset for offset, _ in ledger.decisions}
    return [
        offset
        for offset, lines in _landed_last(ledger.batches, is_last=rules.last_landed).items()
        if state.in_log(offset) and state.line_at(offset) not in lines and offset not in decided
    ]


@lru_cache(None)
def _landed_last(batches: tuple[Batch, ...], *, is_last: bool) -> MappingProxyType[int, frozenset[Line]]:
    """Map each landed offset to what its last batch landed under it, or to the content of the newest epoch."""
    found: dict[int, frozenset[Line]] = {}
    for batch in batches:
        compared = {line for landing in batch if landing.compared for line in landing.lines}
        for offset in {line >> 1 for line in compared}:
            lines = frozenset(line for line in compared if line >> 1 == offset)
            found[offset] = lines if is_last else frozenset({max(lines | found.get(offset, frozenset()))})
    return MappingProxyType(found)


def lost_unread(state: State) -> list[int]:
    """Offsets that landed, and whose other record the log was seen to have and lost before it was read."""
    return [offset for offset in state.ledger.diverged if not state.in_log(offset)]


def landed_in(ledger: Ledger, window: int) -> set[Line]:
    return {line for batch in ledger.batches for landing in batch if landing.window == window for line in landing.lines}


def lost_lines(state: State, window: int) -> list[Line]:
    """What landed in the window, and its file has no more."""
    return sorted(landed_in(state.ledger, window) - set(state.files[window]))


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


def bytes_are_accounted(state: State, window: int) -> bool:
    return len(state.files[window]) == expected_length(state.ledger, window)


def by_window(lines: Lines) -> Iterator[tuple[int, Lines]]:
    """Yield each window of the lines with its own, as a batch appends them."""
    for window in WINDOWS:
        if own := tuple(line for line in lines if window_of(line) == window):
            yield window, own


def raw_holds(scenario: Scenario, state: State, offset: int) -> bool:
    """Whether a loss is refused: a line is looked for where bytes are unaccounted for or a certificate says pending."""
    for window in WINDOWS:
        certificate = state.ledger.certificates[window]
        is_pending = certificate is not None and offset in certificate.pending
        if is_pending or (
            _is_searched(scenario.rules, state.ledger, window) and not bytes_are_accounted(state, window)
        ):
            has_line = any(line >> 1 == offset for line in state.files[window])
            if has_line or not scenario.rules.loss_reads_raw:
                return True
    return False


def _is_searched(rules: Rules, ledger: Ledger, window: int) -> bool:
    certificate = ledger.certificates[window]
    return (
        (rules.loss_reads_unknown or ledger.listed[window])
        and (rules.loss_reads_expired or not ledger.expired[window])
        and (rules.loss_reads_certified or certificate is None or not certificate.valid or ledger.expired[window])
    )
