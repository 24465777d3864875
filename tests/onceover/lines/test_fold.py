"""A window folded in arrays has the verdicts of the reference, which judges one reading at a time."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.onceover.lines import plain_verdicts as plain
from tests.onceover.lines.plain_verdicts import NUMBERS, Expected, judge
from tests.onceover.lines.world_accounts import list_landed, make_accounts, sum_landings, sum_releases
from tests.onceover.lines.worlds import END, START, World, evaluate, make_world

from onceover.lines.accounts import Accounts
from onceover.lines.fold import FoldedLines, fold
from onceover.lines.folded_window import slice_lines
from onceover.lines.judge import NO_WINDOW, NOT_EVALUATED
from onceover.lines.line_format import decode
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.ranges import NO_RANGES, NumberedRanges, name_source
from onceover.lines.read import read
from onceover.lines.summary import WindowSummary
from onceover.lines.verdicts import CLASHING, EXTRA, STRAY
from onceover.lines.window_lines import WindowLines, concatenate, hold_lines
from onceover.model.digest import Digest
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange

NO_PIECES = cut_pieces(LandedRanges(*np.empty((6, 0), np.int64)))
KINDS = {EXTRA: plain.EXTRA, STRAY: plain.STRAY, CLASHING: plain.CLASHING}
OWN = NumberedRanges.of([(OffsetRange(KafkaPartition("00000000", 0), 0, LARGEST_END), 0)])


def _read(world: World, random: Random) -> tuple[WindowLines, list[bytes]]:
    """Read the world's file in pieces of whole lines; return the intact ones' bytes, too."""
    cuts = sorted(random.randint(0, len(world.lines)) for _ in range(3))
    pieces = [world.lines[a:b] for a, b in zip([0, *cuts], [*cuts, len(world.lines)], strict=True)]
    found = [read(memoryview(b"\n".join([b"", *piece, b""]))) for piece in pieces]
    lines = concatenate([hold_lines(each) for each in found])
    texts = [text for each in found for text in slice_lines(each).to_pylist()]
    return replace(lines, compacted=lines.offset % 3 == 0), texts


def _select(lines: WindowLines, texts: list[bytes], rows: np.ndarray) -> tuple[WindowLines, list[bytes]]:
    """Return these rows alone, without corrupt lines."""
    names = [each.name for each in fields(WindowLines) if each.name not in ("contracts", "corrupt")]
    chosen = replace(lines, corrupt=0, **{name: getattr(lines, name)[rows] for name in names})
    return chosen, [texts[row] for row in rows.tolist()]


def _fold(world: World, lines: WindowLines, accounts: Accounts, texts: list[bytes]) -> FoldedLines:
    """Fold, evaluate what that asks for, and fold again."""
    folded = fold(lines, accounts)
    if not len(folded.evaluate):
        return folded
    evaluated = np.full(len(lines), NOT_EVALUATED)
    for row in folded.evaluate.tolist():
        line = decode(texts[row])
        each = line.record.source, line.record.offset
        event_ms = evaluate(line, world.find_contract(each))
        evaluated[row] = NO_WINDOW if event_ms is None else event_ms
    again = fold(lines, accounts, evaluated)
    assert not len(again.evaluate)
    return again


def _assert_same(world: World, expected: Expected, folded: FoldedLines, accounts: Accounts, lines: WindowLines) -> None:
    summary = folded.summary
    for name in NUMBERS:
        assert getattr(summary, name) == expected.numbers[name], name
    assert summary.unknown == tuple(name.encode() for name in expected.unknown)
    assert summary.by_value == sum(each.by_value for each in expected.counted.values())
    counted = [
        ((name_source(int(lines.source[row])), int(lines.offset[row])), (1, *lines.content[row].tolist()), from_value)
        for row, from_value in zip(folded.counting, folded.from_value.tolist(), strict=True)
    ]
    assert sorted(counted) == sorted((*key, each.by_value) for key, each in expected.counted.items())
    assert [each for each, *_ in counted] == sorted(each for each, *_ in counted)
    assert summary.digest == expected.digest
    held = sum((each.digest for ((_, n), _), each in expected.counted.items() if n % 3 == 0), Digest())
    assert Digest(*map(int, summary.compacted)) == held
    landed, pieces = list_landed(world), accounts.pieces
    assert sum_landings(landed, pieces, summary.pieces) == expected.landings
    assert sum_landings(landed, pieces, summary.pieces, released=True) == expected.within
    assert sum_releases(summary.pieces) == expected.releases
    runs = {name: found for kind, name in KINDS.items() if (found := summary.runs.list_spans(kind))}
    assert runs == expected.runs


def _list_fields(summary: WindowSummary) -> dict[str, object]:
    def to_plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            return value.tolist()
        slots = getattr(value, "__slots__", ())
        return {name: to_plain(getattr(value, name)) for name in slots} if slots else value

    return {each.name: to_plain(getattr(summary, each.name)) for each in fields(summary)}


def _check(random: Random, ids: int, size: int) -> int:
    world = make_world(random, ids, size)
    (lines, texts), accounts = _read(world, random), make_accounts(world)
    folded = _fold(world, lines, accounts, texts)
    _assert_same(world, judge(world), folded, accounts, lines)
    order = np.array(random.sample(range(len(lines)), len(lines)), np.int64)
    part = ((lines.source + lines.offset) % 3)[order]
    selected = [_select(lines, texts, order[part == n]) for n in range(3)]
    parts = [_fold(world, some, accounts, of_some).summary for some, of_some in selected]
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
    return WindowLines(zeros, contents[:, 0], zeros, zeros + START, content, numbers, zeros, ~flags, flags, (b"V1",))


def test_largest_numbers_of_a_file_do_not_wrap() -> None:
    rows = np.array([(2**63 - 2, 2**32 - 1), (2**63 - 3, 2**32 - 1), (0, 2**32 - 1)])
    lines = _hold_contents(rows)
    accounts = Accounts(START, END, NO_PIECES, (b"V1",), 0, own=OWN)
    summary = fold(lines, accounts).summary
    found, last = (span.offsets for span in summary.runs.list_spans(EXTRA))
    assert (found.start, found.end, last.start, last.end) == (0, 1, 2**63 - 3, 2**63 - 1)
    assert summary.digest.low2 == 3 * (2**32 - 1)


def test_epochs_are_told_apart_where_hashes_are_equal() -> None:
    lines, accounts = _hold_contents(np.array([(5, 1)] * 4)), Accounts(START, END, NO_PIECES, (b"V1",), 0, own=OWN)
    for epochs in ([1, 2, 1, 2], [2, 1, 1, 1]):
        summary = fold(replace(lines, epoch=np.array(epochs)), accounts).summary
        assert (summary.repeated, summary.digest.records, len(summary.runs)) == (1, 1, 2)


def test_hostile_ids_get_one_verdict_for_each_line() -> None:
    rows, numbers = 100_000, np.random.default_rng(7)
    offsets = numbers.choice([0, 1, 2, 2**62, 2**63 - 3, 2**63 - 2], rows)
    sources = numbers.integers(0, 2**49, 20_000)
    sources[:1000] = sources[:1000] >> 17 << 17
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
        contracts=names,
        corrupt=3,
    )
    held = NumberedRanges.of((OffsetRange(name_source(int(n)), 1, 2**63 - 1), 0) for n in set(sources[:1000]))
    for own, accounted in ((NO_RANGES, NO_RANGES), (NO_RANGES, held), (held, NO_RANGES)):
        accounts = Accounts(START, END, NO_PIECES, names[:2], 0, accounted=accounted, own=own)
        folded = fold(lines, accounts, numbers.choice([NOT_EVALUATED, NO_WINDOW, START], rows))
        summary = folded.summary
        others = sum(getattr(summary, name) for name in NUMBERS[1:6])
        assert (summary.lines, len(folded.counting)) == (rows + 3, summary.digest.records)
        assert (others < rows + 3) == (own is held) == (len(folded.counting) > 0)
        assert summary.lines - others >= summary.digest.records
