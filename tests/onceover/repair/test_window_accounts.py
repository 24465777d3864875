"""Accounts made from a claim judge lines as the reference does, and the proof finds each landing in what they sum."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import UUID

import numpy as np
import pytest
from onceover.model.own_offsets import OwnOffsets
from onceover.repair.unlanded_runs import sort_runs
from tests.onceover.lines.plain_verdicts import Expected, judge
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, END, START, World, evaluate, make_world
from tests.onceover.spark.contracts import make_contract

from onceover.lines.accounts import Accounts
from onceover.lines.fold import fold
from onceover.lines.judge import NO_WINDOW, NOT_EVALUATED
from onceover.lines.read import read
from onceover.lines.reference import decode
from onceover.lines.summary import WindowSummary
from onceover.lines.window_lines import hold_lines
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.conflict import Decision
from onceover.model.contract import Contracts, Cutovers
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.release import Release
from onceover.model.window import from_ms
from onceover.repair.proof import prove
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts

FIRST = make_contract()
SOURCE = KafkaPartition("00c0ffee", 0)


def _claim(world: World, expected: Expected) -> ClaimedWindow:
    """Return the claim of a window whose landings are what the reference finds in raw."""
    landings = []
    for n, (ranges, is_exact) in enumerate(world.landings):
        spans = _span(ranges) if is_exact else ranges
        parts = tuple((span, expected.landings.get((n, span.source), EMPTY)) for span in spans)
        landings.append(ClaimedLanding(n, parts, exact=coalesce(ranges) if is_exact else ()))
    for n, ranges in enumerate(world.releases):
        parts = tuple((span, expected.releases.get((n, span.source), EMPTY)) for span in _span(ranges))
        if ranges:
            landings.append(ClaimedLanding(100 + n, parts, Release(900 + n, 1, coalesce(ranges))))
    decisions = tuple(Decision(source, offset, kept) for (source, offset), kept in world.decisions.items())
    token, length = UUID(int=1), timedelta(milliseconds=END - START)
    return ClaimedWindow(1, from_ms(START), from_ms(START) + length, token, 1, tuple(landings), None, decisions)


def _span(ranges: list[OffsetRange]) -> list[OffsetRange]:
    by_source: dict[KafkaPartition, list[OffsetRange]] = {}
    for piece in coalesce(ranges):
        by_source.setdefault(piece.source, []).append(piece)
    return [OffsetRange(source, of[0].start, of[-1].end) for source, of in by_source.items()]


def _group(world: World) -> GroupAccounts:
    cutovers = Cutovers(2, {piece.source: {2: piece.end} for piece in world.cutovers})
    contracts = Contracts((FIRST, replace(FIRST, skew_ms=7)), cutovers)
    group = GroupAccounts.of(contracts, world.accounted or (), world.shared)
    if world.held is None:
        return group
    own = None if world.known is None else OwnOffsets(tuple(world.known), tuple(world.beyond))
    return group.ask_log(world.held, own)


def _fold(world: World, accounts: Accounts) -> WindowSummary:
    text = b"\n".join([*world.lines, b""])
    lines = hold_lines(read(memoryview(text)))
    folded = fold(lines, accounts)
    evaluated = np.full(len(lines), NOT_EVALUATED)
    for row in folded.evaluate.tolist():
        start = int(lines.position[row])
        line = decode(text[start : text.index(b"\n", start)])
        event_ms = evaluate(line, world.find_contract((line.record.source, line.record.offset)))
        evaluated[row] = NO_WINDOW if event_ms is None else event_ms
    return fold(lines, accounts, evaluated).summary


def _make(seed: int) -> tuple[World, Expected, ClaimedWindow, WindowAccounts]:
    random = Random(seed)
    world = make_world(random, random.choice([3, 30, 300]), 800)
    if world.held is None:
        world.known = None
    if world.accounted is not None and not coalesce(world.accounted):
        world.accounted = None
    expected = judge(world)
    claim = _claim(world, expected)
    made = WindowAccounts.of(claim, _group(world))
    names = tuple(name.encode() for name in CONTRACTS)
    return world, expected, claim, replace(made, accounts=replace(made.accounts, contracts=names))


@pytest.mark.parametrize("seed", range(25))
def test_accounts_of_a_claim_judge_as_the_world_says(seed: int) -> None:
    world, expected, claim, made = _make(seed)
    plain = make_accounts(world)
    found, other = _fold(world, made.accounts), _fold(world, plain)
    numbers = ("lines", "corrupt", "misplaced", "rejected", "stray", "unlanded", "by_value", "conflicts", "foreign")
    assert [getattr(found, n) for n in numbers] == [getattr(other, n) for n in numbers]
    assert [getattr(found, n) for n in numbers if n in expected.numbers] == [
        expected.numbers[n] for n in numbers if n in expected.numbers
    ]
    rebuilt = made.rebuild(found, 7)
    assert rebuilt.digest == sum((digest for digest, _ in expected.counted.values()), EMPTY)
    assert rebuilt.duplicates == expected.numbers["counting"] - len(expected.counted)
    assert {((c.source, c.offset), name, ms) for c in rebuilt.contested for name, ms in c.contents} == (
        expected.contested
    )
    assert {((d.offsets.source, d.offsets.start), d.hash, d.counts) for d in rebuilt.decided} == expected.decided
    assert list(rebuilt.strays) == [piece for piece, _ in expected.runs.get("stray", [])]
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


@pytest.mark.parametrize("seed", range(8))
def test_offsets_left_out_are_orphans_of_all_that_hold_them(seed: int) -> None:
    world, _, claim, _ = _make(seed)
    world.decisions = {}
    claim = replace(claim, decisions=())
    wanted = coalesce(
        OffsetRange(r.source, r.start, r.start + len(r) // 2) for ranges, _ in world.landings for r in ranges
    )
    made = WindowAccounts.of(claim, _group(world).search(wanted), wanted)
    names = tuple(name.encode() for name in CONTRACTS)
    found = sort_runs(_fold(world, replace(made.accounts, contracts=names)))
    world.landings = [(list(subtract(ranges, wanted)), False) for ranges, _ in world.landings]
    released = world.releases
    world.releases = [list(subtract(ranges, wanted)) for ranges in released]
    world.accounted, world.held, world.known, world.beyond = [], [], list(wanted), []
    world.cutovers = list(subtract(world.cutovers, [r for ranges in released for r in ranges]))
    contract = world.find_contract
    world.find_contract = lambda each: CONTRACTS[2] if _holds(released, each) else contract(each)  # type: ignore[method-assign]
    expected = judge(world)
    assert list(found.orphans) == [piece for piece, _ in expected.runs.get("orphan", [])]
    assert sum((part.digest for part in found.parts), EMPTY) == sum(
        (digest for _, digest in expected.runs.get("orphan", [])), Digest()
    )
    assert found.conflicts == expected.numbers["unlanded_conflicts"]


def _holds(released: list[list[OffsetRange]], each: tuple[KafkaPartition, int]) -> bool:
    return any(r.source == each[0] and r.start <= each[1] < r.end for ranges in released for r in ranges)
