"""Accounts made from a claim judge lines as the reference does, and the proof finds each landing in what they sum."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import UUID

import numpy as np
import pytest
from tests.onceover.lines.plain_verdicts import Expected, judge
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, END, START, World, evaluate, make_world
from tests.onceover.spark.contracts import make_contract

from onceover.lines.accounts import Accounts
from onceover.lines.fold import fold
from onceover.lines.folded_window import slice_lines
from onceover.lines.judge import NO_WINDOW, NOT_EVALUATED
from onceover.lines.line_format import decode
from onceover.lines.read import read
from onceover.lines.summary import WindowSummary
from onceover.lines.window_lines import hold_lines
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contracts, Cutovers
from onceover.model.digest import EMPTY
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.release import Release
from onceover.model.repair_failure import RepairFailure
from onceover.model.window import from_ms
from onceover.repair.proof import prove
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts

FIRST = make_contract()
NUMBERS = ("lines", "corrupt", "misplaced", "stray", "spare", "foreign", "repeated")


def _claim(world: World, expected: Expected) -> ClaimedWindow:
    """Return the claim of a window whose landings are what the reference finds in raw."""
    landings = []
    for n, (spans, is_exact) in enumerate(world.landings):
        ranges = [span.offsets for span in spans]
        parts = tuple((whole, expected.landings.get((n, whole.source), EMPTY)) for whole in _span(ranges))
        landings.append(ClaimedLanding(n, parts, exact=coalesce(ranges) if is_exact else (), spans=tuple(spans)))
    for n, ranges in enumerate(world.releases):
        parts = tuple((span, expected.releases.get((n, span.source), EMPTY)) for span in _span(ranges))
        if ranges:
            landings.append(ClaimedLanding(100 + n, parts, Release(900 + n, 1, coalesce(ranges))))
    token, length = UUID(int=1), timedelta(milliseconds=END - START)
    return ClaimedWindow(1, from_ms(START), from_ms(START) + length, token, 1, tuple(landings), None)


def _span(ranges: list[OffsetRange]) -> list[OffsetRange]:
    by_source: dict[KafkaPartition, list[OffsetRange]] = {}
    for piece in coalesce(ranges):
        by_source.setdefault(piece.source, []).append(piece)
    return [OffsetRange(source, of[0].start, of[-1].end) for source, of in by_source.items()]


def _group(world: World) -> GroupAccounts:
    cutovers = Cutovers(2, {piece.source: {2: piece.end} for piece in world.cutovers})
    contracts = Contracts((FIRST, replace(FIRST, skew_ms=7)), cutovers)
    return GroupAccounts.of(contracts, world.accounted, world.own).look_again(world.beside, world.spare)


def _fold(world: World, accounts: Accounts) -> WindowSummary:
    found = read(memoryview(b"\n".join([*world.lines, b""])))
    lines, texts = hold_lines(found), slice_lines(found).to_pylist()
    folded = fold(lines, accounts)
    evaluated = np.full(len(lines), NOT_EVALUATED)
    for row in folded.evaluate.tolist():
        line = decode(texts[row])
        event_ms = evaluate(line, world.find_contract((line.record.source, line.record.offset)))
        evaluated[row] = NO_WINDOW if event_ms is None else event_ms
    return fold(lines, accounts, evaluated).summary


def _make(seed: int) -> tuple[World, Expected, ClaimedWindow, WindowAccounts]:
    random = Random(seed)
    world = make_world(random, random.choice([3, 30, 300]), 800)
    expected = judge(world)
    claim = _claim(world, expected)
    made = WindowAccounts.of(claim, _group(world), world.spare)
    names = tuple(name.encode() for name in CONTRACTS)
    return world, expected, claim, replace(made, accounts=replace(made.accounts, contracts=names))


@pytest.mark.parametrize("seed", range(25))
def test_accounts_of_a_claim_judge_as_the_world_says(seed: int) -> None:
    world, expected, claim, made = _make(seed)
    found = _fold(world, made.accounts)
    assert {n: getattr(found, n) for n in NUMBERS} == {n: expected.numbers[n] for n in NUMBERS}
    assert found.by_value == _fold(world, make_accounts(world)).by_value
    rebuilt = made.rebuild(found, 7)
    assert rebuilt.digest == expected.digest
    assert rebuilt.duplicates == expected.numbers["counting"] - len(expected.counted)
    runs = {"stray": rebuilt.strays, "extra": rebuilt.extras, "clashing": rebuilt.clashing}
    assert {kind: list(found) for kind, found in runs.items() if found} == expected.runs
    assert (rebuilt.lists_all, rebuilt.repeated) == (True, expected.numbers["repeated"])
    assert (rebuilt.spare_lines, rebuilt.foreign_lines) == (expected.numbers["spare"], expected.numbers["foreign"])
    assert set(rebuilt.unknown) == expected.unknown
    wrong = [reason for reason in prove(claim, rebuilt).reasons if reason.startswith("landing ")]
    assert wrong == [], "raw holds what landed"


@pytest.mark.parametrize("seed", range(25))
def test_proof_finds_the_landing_that_differs(seed: int) -> None:
    world, _, claim, made = _make(seed)
    rebuilt = made.rebuild(_fold(world, made.accounts), 7)
    random = Random(seed)
    places = [(n, m) for n, landing in enumerate(claim.landings) for m in range(len(landing.parts))]
    for n, m in random.sample(places, min(8, len(places))):
        landing = claim.landings[n]
        offsets, digest = landing.parts[m]
        other = replace(digest, high1=digest.high1 + 1)
        changed = replace(landing, parts=(*landing.parts[:m], (offsets, other), *landing.parts[m + 1 :]))
        landings = (*claim.landings[:n], changed, *claim.landings[n + 1 :])
        reasons = prove(replace(claim, landings=landings), rebuilt).reasons
        assert any(reason.startswith(f"landing {landing.landing_id}: ") for reason in reasons)


def test_too_many_extras_to_name_are_counted_and_refused() -> None:
    world, expected, claim, made = _make(3)
    rebuilt = made.rebuild(_fold(world, replace(made.accounts, max_runs=2)), 7)
    assert (rebuilt.digest, rebuilt.extras) == (expected.digest, tuple(expected.runs["extra"][:2]))
    verdict = prove(claim, rebuilt)
    assert RepairFailure.TOO_MANY_EXTRAS in verdict.failures
    assert any("in more offset ranges than a certificate names" in reason for reason in verdict.reasons)


def test_releases_are_summed_in_each_piece_of_other_landings() -> None:
    def of(start: int, end: int) -> OffsetRange:
        return OffsetRange(KafkaPartition("00000001", 0), start, end)

    release = Release(900, 1, (of(3, 4), of(7, 9), of(19, 23)))
    landings = [ClaimedLanding(n, ((of(start, end), EMPTY),)) for n, (start, end) in enumerate(((0, 10), (8, 20)))]
    landings.append(ClaimedLanding(100, ((of(3, 23), EMPTY),), release))
    token, start = UUID(int=1), from_ms(START)
    claim = ClaimedWindow(1, start, start + timedelta(hours=1), token, 1, tuple(landings), None)
    made = WindowAccounts.of(claim, GroupAccounts.of(Contracts((FIRST,)), (), ()))
    pieces = made.accounts.pieces
    assert list(zip(pieces.start.tolist(), pieces.end.tolist(), strict=True)) == [(0, 8), (8, 10), (10, 20)]
    first = {piece: offset for (_, _, piece), offset in made.first_ids.items()}
    assert first == {-1: 3, 0: 3, 1: 8, 2: 19}
