"""A window folded in arrays has the verdicts of the reference, which judges one ID at a time."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.onceover.lines import plain_verdicts as plain
from tests.onceover.lines.landing_sums import LandingSums, sum_landings, sum_releases
from tests.onceover.lines.plain_verdicts import Expected, judge
from tests.onceover.lines.world_accounts import list_adopted, list_landed, make_accounts
from tests.onceover.lines.worlds import END, START, World, evaluate, make_world
from tests.plain_pieces import NO_PIECES

from onceover.lines.accounts import Accounts
from onceover.lines.fold import FoldedLines, fold
from onceover.lines.judge import NO_WINDOW, NOT_EVALUATED
from onceover.lines.ranges import NO_RANGES, NumberedRanges, name_source
from onceover.lines.read import read
from onceover.lines.reference import decode
from onceover.lines.summary import MOST_IDS, Contents, WindowSummary
from onceover.lines.verdicts import BEYOND_END, COUNTS, ORPHAN, PENDING, STRAY
from onceover.lines.window_lines import WindowLines, concatenate, hold_lines
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

KINDS = {
    STRAY: "stray",
    PENDING: plain.PENDING,
    BEYOND_END: plain.BEYOND,
    ORPHAN: plain.ORPHAN,
}


def _read(world: World, random: Random) -> tuple[WindowLines, bytes]:
    """Read the world's file in pieces of whole lines; return its text, too."""
    cuts = sorted(random.randint(0, len(world.lines)) for _ in range(3))
    pieces = [world.lines[a:b] for a, b in zip([0, *cuts], [*cuts, len(world.lines)], strict=True)]
    text, parts = b"", []
    for piece in pieces:
        data = b"\n".join([b"", *piece, b""])
        parts.append(hold_lines(read(memoryview(data)), len(text)))
        text += data
    lines = concatenate(parts)
    return replace(lines, compacted=lines.offset % 3 == 0), text


def _fold(world: World, lines: WindowLines, accounts: Accounts, text: bytes) -> FoldedLines:
    """Fold, evaluate what that asks for, and fold again."""
    folded = fold(lines, accounts)
    if not len(folded.evaluate):
        return folded
    evaluated = np.full(len(lines), NOT_EVALUATED)
    for row in folded.evaluate.tolist():
        start = int(lines.position[row])
        line = decode(text[start : text.index(b"\n", start)])
        each = line.record.source, line.record.offset
        event_ms = evaluate(line, world.find_contract(each))
        evaluated[row] = NO_WINDOW if event_ms is None else event_ms
    again = fold(lines, accounts, evaluated)
    assert not len(again.evaluate)
    return again


def _name(contents: Contents) -> list[tuple[tuple[KafkaPartition, int], str, int, bool]]:
    columns = (each.tolist() for each in (contents.source, contents.offset, contents.content))
    flags = contents.event_ms.tolist(), contents.counts.tolist()
    return [
        ((name_source(source), offset), "".join(f"{part:08x}" for part in parts), ms, counts)
        for source, offset, parts, ms, counts in zip(*columns, *flags, strict=True)
    ]


def _list_sums(found: LandingSums) -> dict[tuple[int, KafkaPartition], Digest]:
    columns = found.landing.tolist(), found.source.tolist(), found.sums.tolist()
    listed = {(n, name_source(source)): Digest(*sums) for n, source, sums in zip(*columns, strict=True)}
    return {key: digest for key, digest in listed.items() if digest.records}


def _assert_same(world: World, expected: Expected, folded: FoldedLines, accounts: Accounts, lines: WindowLines) -> None:
    summary = folded.summary
    names = ("lines", "corrupt", "misplaced", "rejected", "stray", "unlanded", "conflicts", "misdated")
    for name in (*names, "unlanded_conflicts", "foreign"):
        assert getattr(summary, name) == expected.numbers[name], name
    assert summary.unknown == tuple(name.encode() for name in expected.unknown)
    assert summary.by_value == sum(by_value for _, by_value in expected.counted.values())
    counted = [
        (name_source(int(lines.source[row])), int(lines.offset[row]), bool(from_value))
        for row, from_value in zip(folded.counting, folded.from_value, strict=True)
    ]
    assert counted == [(*each, from_value) for each, (_, from_value) in sorted(expected.counted.items())]
    assert summary.digest == sum((digest for digest, _ in expected.counted.values()), Digest())
    held = sum((digest for (_, n), (digest, _) in expected.counted.items() if n % 3 == 0), Digest())
    assert Digest(*map(int, summary.compacted)) == held
    assert summary.duplicates == expected.numbers["counting"] - len(counted)
    landed, pieces = list_landed(world), accounts.pieces
    assert _list_sums(sum_landings(landed, pieces, summary.pieces)) == expected.landings
    assert _list_sums(sum_landings(landed, pieces, summary.pieces, released=True)) == expected.within
    assert _list_sums(sum_landings(list_adopted(world), pieces, summary.pieces)) == expected.adopted
    assert _list_sums(sum_releases(pieces, summary.pieces)) == expected.releases
    runs = {name: found for name, found in expected.runs.items() if name != plain.UNSORTED}
    assert {name: found for kind, name in KINDS.items() if (found := summary.runs.list_ranges(kind))} == runs
    assert {(each, name, ms) for each, name, ms, _ in _name(summary.contested)} == expected.contested
    assert {(each, name, ms) for each, name, ms, _ in _name(summary.listed)} == expected.shared
    shared = summary.shared.list_ranges(COUNTS)
    assert {(r.source, n) for r, _ in shared for n in range(r.start, r.end)} == {each for each, _, _ in expected.shared}
    assert {(each, name, counts) for each, name, _, counts in _name(summary.decided)} == expected.decided


def _list_fields(summary: WindowSummary) -> dict[str, object]:
    def to_plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            return value.tolist()
        slots = getattr(value, "__slots__", ())
        return {name: to_plain(getattr(value, name)) for name in slots} if slots else value

    return {each.name: to_plain(getattr(summary, each.name)) for each in fields(summary)}


def _check(random: Random, ids: int, size: int) -> int:
    world = make_world(random, ids, size)
    (lines, text), accounts = _read(world, random), make_accounts(world)
    folded = _fold(world, lines, accounts, text)
    _assert_same(world, judge(world), folded, accounts, lines)
    shuffled = lines.select(np.array(random.sample(range(len(lines)), len(lines)), np.int64))
    part = (shuffled.source + shuffled.offset) % 3
    parts = [_fold(world, shuffled.select(np.flatnonzero(part == n)), accounts, text).summary for n in range(3)]
    whole = _list_fields(parts[2] + parts[0] + parts[1])
    corrupt = {name: getattr(folded.summary, name) for name in ("lines", "corrupt")}
    assert whole | corrupt == _list_fields(folded.summary)
    return len(world.lines)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(0, 12))
def test_few_lines_get_the_verdicts_of_the_reference(random: Random, ids: int, size: int) -> None:
    _check(random, ids, size)


@pytest.mark.parametrize("seed", range(8))
def test_many_lines_get_the_verdicts_of_the_reference(seed: int) -> None:
    random = Random(seed)
    assert sum(_check(random, random.choice([3, 100, 1000, 3000]), 3300) for _ in range(4)) >= 13_000


def _hold_contents(contents: np.ndarray) -> WindowLines:
    """Return a line for each row of IDs and contents, of one Kafka partition."""
    rows = len(contents)
    content = np.zeros((rows, 4), np.uint32)
    content[:, 3] = contents[:, 1]
    zeros, numbers = np.zeros(rows, np.int64), contents[:, 1].astype(np.uint64)
    flags = np.zeros(rows, bool)
    return WindowLines(
        zeros, contents[:, 0], zeros, zeros + START, content, numbers, zeros, ~flags, flags, zeros, (b"V1",)
    )


def test_contested_ids_are_as_many_in_parts_as_in_whole() -> None:
    rows = np.array([(offset, content) for offset in range(MOST_IDS + 5) for content in (1, 2)])
    lines = _hold_contents(rows)
    accounts = Accounts(START, END, NO_PIECES, (b"V1",), 0, held=NO_RANGES)
    whole = fold(lines, accounts).summary
    parts = [fold(lines.select(np.flatnonzero(lines.offset % 2 == n)), accounts).summary for n in range(2)]
    assert _list_fields(parts[0] + parts[1]) == _list_fields(whole)
    assert (whole.unlanded_conflicts, len(whole.contested)) == (MOST_IDS + 5, 2 * MOST_IDS)


def test_largest_numbers_of_a_file_do_not_wrap() -> None:
    rows = np.array([(2**63 - 2, 2**32 - 1), (2**63 - 3, 2**32 - 1), (0, 2**32 - 1)])
    lines = _hold_contents(rows)
    accounts = Accounts(START, END, NO_PIECES, (b"V1",), 0, held=NO_RANGES)
    (found, digest), (last, both) = fold(lines, accounts).summary.runs.list_ranges(ORPHAN)
    assert (found.start, found.end, last.start, last.end) == (0, 1, 2**63 - 3, 2**63 - 1)
    assert (digest.low2, both.low2) == (2**32 - 1, 2**33 - 2)


def test_hostile_ids_get_one_verdict_for_each_line() -> None:
    rows, numbers = 100_000, np.random.default_rng(7)
    offsets = numbers.choice([0, 1, 2, 2**62, 2**63 - 3, 2**63 - 2], rows)
    sources = numbers.integers(0, 2**49, 20_000)
    content = numbers.integers(0, 2**32, (rows, 4), np.uint32) * numbers.integers(0, 2, (rows, 1), np.uint32)
    names = tuple(b"V%d-00c0ffee00c0ffee" % n for n in range(1, 5_000))
    lines = WindowLines(
        source=numbers.choice(sources, rows),
        offset=offsets,
        epoch=numbers.integers(-1, 3, rows),
        event_ms=numbers.choice([-1, 0, START, END - 1, END, 10**13 - 1], rows),
        content=content,
        hash=numbers.integers(0, 3, rows, np.uint64),
        contract=numbers.integers(0, len(names), rows),
        has_columns=offsets > 0,
        compacted=offsets > 1,
        position=offsets,
        contracts=names,
        corrupt=3,
    )
    held = NumberedRanges.of(
        (OffsetRange(name_source(int(n)), 1, 2**63 - 1), 0) for n in set(sources[:1000] >> 17 << 17)
    )
    for accounted in (None, held):
        accounts = Accounts(START, END, NO_PIECES, names[:2], 0, accounted=accounted, held=held, shared=held)
        folded = fold(lines, accounts, numbers.choice([NOT_EVALUATED, NO_WINDOW, START], rows))
        summary = folded.summary
        judged = summary.corrupt + summary.misplaced + summary.rejected + summary.stray + summary.unlanded
        assert (judged, summary.lines, len(folded.counting)) == (rows + 3, rows + 3, 0)
