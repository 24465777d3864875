"""Consequences of a state, by the product's own functions: accounted records, frontiers, closed windows, findings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from uuid import UUID

from tests.plain_pieces import split_ranges
from tests.protocol.mutant import Mutant
from tests.protocol.state import TORN, Batch, Certificate, Counts, Landing, Repair, Scenario, Span, State

from onceover.model import offsets
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import Digest, sum_digests
from onceover.model.finding import Evidence, Finding, is_right, judge_window
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.window import PartitionProgress, compute_watermark
from onceover.repair.proof import prove

GENERATION = "0000abcd"
EPOCH = datetime(2013, 1, 1, tzinfo=UTC)
WINDOW = timedelta(minutes=1)
Spans = tuple[Span, ...]


class Progress(NamedTuple):
    """Return the accounted records and frontiers of the landed batches' ranges."""

    accounted: frozenset[int]
    frontiers: tuple[int, ...]


def window_start(window: int) -> datetime:
    return EPOCH + window * WINDOW


def source(kafka_partition: int) -> KafkaPartition:
    return KafkaPartition(GENERATION, kafka_partition)


def as_range(span: Span) -> OffsetRange:
    return OffsetRange(source(span.kafka_partition), span.start, span.end)


def as_span(piece: OffsetRange) -> Span:
    return Span(piece.source.kafka_partition, piece.start, piece.end)


@cache
def digest(counts: Counts) -> Digest:
    """Compute a digest that differs for any two multisets: one hexadecimal digit a record."""
    return Digest(sum(counts), sum(n * 16**r for r, n in enumerate(counts)))


def digest_of(scenario: Scenario, records: Iterable[int]) -> Digest:
    kept = list(records)
    return digest(tuple(kept.count(r) for r in range(len(scenario.window_of))))


@cache
def landed(batches: tuple[Batch, ...]) -> Spans:
    """Return the ranges of all batches that count."""
    return tuple(span for batch in batches if batch.state == "landed" for span in batch.spans)


@cache
def _progress(scenario: Scenario, batches: tuple[Batch, ...]) -> Progress:
    spans = landed(batches)
    frontiers = tuple(
        offsets.compute_frontier(0, [as_range(s) for s in spans if s.kafka_partition == p])
        for p in range(len(scenario.logs))
    )
    return Progress(frozenset(scenario.records(spans)), frontiers)


def progress(scenario: Scenario, state: State) -> Progress:
    return _progress(scenario, state.batches)


@cache
def _holes(spans: Spans, reach: tuple[int, ...]) -> Spans:
    """Return the missing offsets below each reach."""
    ends = [OffsetRange(source(p), end, end + 1) for p, end in enumerate(reach)]
    origins = {source(p): 0 for p in range(len(reach))}
    return tuple(map(as_span, offsets.compute_holes(origins, [*map(as_range, spans), *ends])))


def holes(state: State) -> Spans:
    return _holes(landed(state.batches), state.reach)


@cache
def closed_at(scenario: Scenario, frontiers: tuple[int, ...], reach: tuple[int, ...]) -> tuple[bool, ...]:
    """List the windows that are closed. Event times are the windows' starts; lateness and idle time are zero."""
    known = []
    for log, frontier, end in zip(scenario.logs, frontiers, reach, strict=True):
        seen = [w for w in log[:frontier] if w is not None]
        idle = timedelta(0) if frontier >= len(log) and frontier >= end else None
        known.append(PartitionProgress(window_start(max(seen)) if seen else None, idle))
    moment, every = compute_watermark(known, timedelta(0), timedelta(0))
    return tuple(every or (moment is not None and window_start(w) + WINDOW <= moment) for w in range(scenario.windows))


def closed(scenario: Scenario, state: State) -> tuple[bool, ...]:
    """Return which windows are closed and in the ledger."""
    shut = closed_at(scenario, progress(scenario, state).frontiers, state.reach)
    return tuple([c and v > 0 for c, v in zip(shut, state.version, strict=True)])


def is_certified(state: State, window: int) -> bool:
    certificate = state.certificates[window]
    return certificate is not None and certificate.version == state.version[window]


Placed = tuple[int, int, tuple[int, ...], Spans]  # a landing: its number, first byte, records, and its batch's ranges


@cache
def placed(landings: tuple[Landing, ...], batches: tuple[Batch, ...], window: int) -> tuple[Placed, ...]:
    """Return the landings in the window's file that count: those of landed batches."""
    return tuple(
        (n, x.byte_start, x.records, batches[x.batch].spans)
        for n, x in enumerate(landings)
        if x.file == window and batches[x.batch].state == "landed"
    )


def landing_set(state: State, window: int) -> tuple[int, ...]:
    return tuple([n for n, *_ in placed(state.landings, state.batches, window)])


def evidence(scenario: Scenario, state: State, window: int) -> Evidence:
    """Return the ledger's snapshot of the window."""
    certificate, control = state.certificates[window], state.control[window]
    return _evidence(scenario, state.landings, state.batches, certificate, control, window)


@cache
def _evidence(
    scenario: Scenario,
    landings: tuple[Landing, ...],
    batches: tuple[Batch, ...],
    certificate: Certificate | None,
    control: Counts,
    window: int,
) -> Evidence:
    there = placed(landings, batches, window)
    certified = certificate.landing_set if certificate else ()
    frozen = certificate.frozen_length if certificate else 0
    since = [x for x in there if x[0] not in certified]
    if scenario.has(Mutant.BYTES_OF_ALL_LANDINGS):
        beyond = sum(len(records) for _, _, records, _ in there) - frozen
    else:
        beyond = sum(len(records) for _, byte_start, records, _ in since if byte_start >= frozen)
    overlaps = tuple(
        (a[0], b[0])
        for i, a in enumerate(there)
        for b in there[i + 1 :]
        if not (a[0] in certified and b[0] in certified) and _overlap(scenario, a, b)
    )
    return Evidence(
        window_start=window_start(window),
        window_end=window_start(window + 1),
        version=0,
        control=digest(control),
        certified=digest(certificate.counts) if certificate else None,
        certificate_version=None,
        frozen_length=frozen,
        landed_since=sum_digests(digest_of(scenario, records) for _, _, records, _ in since),
        bytes_since=beyond,
        landings_since=tuple(n for n, *_ in since),
        late_records=0,
        overlaps=overlaps,
        unproved=(),
        landing_set=tuple(n for n, *_ in there),
    )


def _overlap(scenario: Scenario, one: Placed, other: Placed) -> bool:
    """Return whether the batches' ranges overlap in a Kafka partition that both landings hold records of."""
    return any(
        a.kafka_partition == b.kafka_partition and a.start < b.end and b.start < a.end
        for a in one[3]
        for b in other[3]
        if set(scenario.records((a,))) & set(one[2]) and set(scenario.records((b,))) & set(other[2])
    )


def findings(scenario: Scenario, state: State, window: int) -> tuple[Finding, ...]:
    """Return the product's own judgement about the window."""
    certificate, control, length = state.certificates[window], state.control[window], len(state.raw[window])
    return _judged(scenario, state.landings, state.batches, certificate, control, window, length)


@cache
def _judged(
    scenario: Scenario,
    landings: tuple[Landing, ...],
    batches: tuple[Batch, ...],
    certificate: Certificate | None,
    control: Counts,
    window: int,
    length: int,
) -> tuple[Finding, ...]:
    return judge_window(_evidence(scenario, landings, batches, certificate, control, window), length)


def is_clean(scenario: Scenario, state: State, window: int) -> bool:
    """Return whether the ledger alone would certify the window."""
    return is_right(findings(scenario, state, window))


def certificate_from_ledger(scenario: Scenario, state: State, window: int) -> Certificate:
    """Return the certificate that detection records for a window that it judged clean."""
    seen = evidence(scenario, state, window)
    certificate = state.certificates[window]
    counts = list(certificate.counts if certificate else scenario.nothing)
    for number, _, records, _ in placed(state.landings, state.batches, window):
        if number in seen.landings_since:
            for record in records:
                counts[record] += 1
    return Certificate(state.version[window], seen.landing_set, seen.expected_length, tuple(counts))


def right(scenario: Scenario, state: State, window: int) -> Counts:
    """Return the right aggregates of the window: each accounted record once."""
    accounted = progress(scenario, state).accounted
    return tuple(int(w == window and r in accounted) for r, w in enumerate(scenario.window_of))


def claimed_of(scenario: Scenario, state: State, repair: Repair) -> ClaimedWindow:
    """Return the claim as the product's repair holds it."""
    there = placed(state.landings, state.batches, repair.window)
    landings = tuple([x for x in there if x[0] in repair.landing_set])
    return _claimed(scenario, repair._replace(accounted=frozenset(), frozen=None, halfway=False), landings)


@cache
def _claimed(scenario: Scenario, repair: Repair, landings: tuple[Placed, ...]) -> ClaimedWindow:
    def parts(records: tuple[int, ...], spans: Spans) -> tuple[tuple[OffsetRange, Digest], ...]:
        within = ((span, set(scenario.records((span,))) & set(records)) for span in spans)
        return tuple((as_range(span), digest_of(scenario, inside)) for span, inside in within if inside)

    return ClaimedWindow(
        repair_id=0,
        window_start=window_start(repair.window),
        window_end=window_start(repair.window + 1),
        token=UUID(int=repair.token),
        version=repair.version,
        landings=tuple(ClaimedLanding(n, parts(records, spans)) for n, _, records, spans in landings),
        certified=digest(repair.certified) if repair.certified is not None else None,
    )


def rebuilt_of(
    scenario: Scenario, claimed: ClaimedWindow, accounted: frozenset[int], lines: tuple[int, ...]
) -> RebuiltWindow:
    """Compute Spark's result for these lines: deduplicated, and only those in the claimed landings' ranges."""
    pieces = [(piece, set(scenario.records((as_span(piece),)))) for piece in split_ranges(claimed.landings).ranges]
    held = set(lines) - {TORN}
    counted = [(piece, held & inside) for piece, inside in pieces if held & inside]
    known = {r for _, inside in pieces for r in inside}
    return RebuiltWindow(
        lines=len(lines),
        corrupt_lines=lines.count(TORN),
        misplaced_lines=0,
        unaccounted_lines=sum(r not in known and r != TORN and r not in accounted for r in lines),
        stray_lines=sum(r not in known and r in accounted for r in lines),
        conflicts=0,
        misdated=0,
        frozen_length=len(lines),
        ranges=tuple(RebuiltRange(piece, digest_of(scenario, inside)) for piece, inside in counted),
    )


def rebuilt_counts(scenario: Scenario, state: State, repair: Repair) -> tuple[Counts, tuple[str, ...]]:
    """Return the counts that a repair would publish, and the reasons against it (the product's own verdict)."""
    lines = state.raw[repair.window][: repair.frozen]
    claimed = claimed_of(scenario, state, repair)
    return _rebuilt_counts(scenario, claimed, repair.accounted, lines)


@cache
def _rebuilt_counts(
    scenario: Scenario, claimed: ClaimedWindow, accounted: frozenset[int], lines: tuple[int, ...]
) -> tuple[Counts, tuple[str, ...]]:
    numbers = range(len(scenario.window_of))
    if scenario.has(Mutant.ALL_BYTES_COUNT):
        return tuple(int(r in lines) for r in numbers), ()
    rebuilt = rebuilt_of(scenario, claimed, accounted, lines)
    held = {r for piece in rebuilt.ranges for r in scenario.records((as_span(piece.offsets),))} & set(lines)
    return tuple(int(r in held) for r in numbers), prove(claimed, rebuilt).reasons
