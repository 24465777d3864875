"""Plain windows are folded together, to what `fold` gives for each; a window with anything else is left to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.onceover.lines.test_folded_window import FORMATS
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, END, OWN, START, STRANGERS, World

from onceover.lines.fold import fold
from onceover.lines.line_format import Line, encode
from onceover.lines.plain_windows import fold_plain
from onceover.lines.read import read
from onceover.lines.typed_lines import hold_typed, join_typed
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import LARGEST_END, OffsetRange
from onceover.model.record import Record

A, B = OWN[:2]
Spoil = Callable[[World], None]


def _write(offset: int, epoch: int | None = 7, **other: object) -> bytes:
    record = Record(A, offset, 1, None, (), b"%d,%d,%d" % (START, START, START))
    return encode(replace(Line(record, START, CONTRACTS[1], (b"k",), epoch), **other))  # type: ignore[arg-type]


def _make_plain(random: Random, ids: int, epoch: int | None, *, blind: bool = False) -> World:
    """Return a window of some of these IDs but the first, each once or more, under overlapping and exact landings."""
    lines = [_write(n, epoch) for n in range(1, ids) if n < 3 or random.random() < 0.7]
    lines += [_write(n, epoch, record=Record(B, n, 1, b"key", (), b"1")) for n in range(ids // 2)]
    lines += random.choices(lines, k=ids // 5)
    random.shuffle(lines)
    cut, known = random.randrange(ids), None if blind else epoch
    whole = [EpochSpan(OffsetRange(A, 0, cut), known), EpochSpan(OffsetRange(A, cut // 2, ids), known)]
    scattered = [EpochSpan(OffsetRange(B, n, n + 1), known) for n in range(ids)]
    landings = [([span], False) for span in whole if len(span.offsets)] + [(scattered, True)]
    return World([*lines, b"torn"][: random.choice([-1, None])], landings, [], [], [], [], [], [])


def _add(*lines: bytes) -> Spoil:
    return lambda world: world.lines.extend(lines)


def _release(world: World) -> None:
    world.releases = [[OffsetRange(A, 1, 2)]]


def _land_without_epochs(world: World) -> None:
    """Land what an old broker gave: known to have no epoch, which is no unknown one."""
    world.lines = [_write(1, None), _write(2, 7)]
    world.landings = [([EpochSpan(OffsetRange(A, 0, 20), NO_EPOCH)], False)]


def _land_one_source_blind(world: World) -> None:
    _land_without_epochs(world)
    world.landings.append(([EpochSpan(OffsetRange(B, 0, 20), None)], False))


def _cut_over(world: World) -> None:
    world.cutovers = [OffsetRange(A, 0, 2)]


def _land_under_two_epochs(world: World) -> None:
    world.landings.append(([EpochSpan(OffsetRange(A, 10**6, 10**6 + 1), 0)], False))


def _land_under_unknown_source(world: World) -> None:
    world.landings.append(([EpochSpan(OffsetRange(STRANGERS[0], 10**6, 10**6 + 1), 7)], False))
    world.lines.append(_write(10**6))


def _land_under_source_of_others(world: World) -> None:
    world.landings = [([EpochSpan(OffsetRange(A, 10**6, 10**6 + 1), 7)], False), world.landings[-1]]
    world.lines = [line for line in world.lines if line.startswith(b"00c0ffee-99999")]
    world.lines.append(_write(0, record=Record(B, 10**6, 1, None, (), b"")))


def _land_far_away(world: World) -> None:
    world.landings.append(([EpochSpan(OffsetRange(A, LARGEST_END - 1, LARGEST_END), 7)], False))
    world.lines.append(_write(LARGEST_END - 1))


SPOILS: dict[str, Spoil] = {
    "landed nowhere": _add(_write(10**6)),
    "source without landings": _add(_write(0, record=Record(OWN[2], 0, 1, None, (), b""))),
    "landing of an unknown source": _land_under_unknown_source,
    "landing of a source of others": _land_under_source_of_others,
    "other epoch": _add(_write(0, 0)),
    "no epoch": _add(_write(0, None)),
    "landed without an epoch": _land_without_epochs,
    "blind beside it": _land_one_source_blind,
    "other contract": _add(_write(0, contract=CONTRACTS[0])),
    "other window before": _add(_write(0, event_ms=START - 1)),
    "other window after": _add(_write(0, event_ms=END)),
    "quarantined": _add(_write(0, event_ms=None, columns=(b"why",))),
    "columns left out": _add(_write(0, columns=None)),
    "other columns": _add(_write(1, columns=(b"other",))),
    "release": _release,
    "cutover": _cut_over,
    "two epochs": _land_under_two_epochs,
    "far away": _land_far_away,
}


def _compare(worlds: list[World]) -> list[int]:
    """Return the numbers of windows that are folded together, after comparing them with `fold`."""
    held = [hold_typed(read(memoryview(b"\n".join(world.lines))), FORMATS).lines for world in worlds]
    every = hold_typed(read(memoryview(b"\n".join(line for world in worlds for line in world.lines))), FORMATS).lines
    bounds = np.cumsum([0, *map(len, held)])
    accounts = [make_accounts(world) for world in worlds]
    plain = fold_plain(every, bounds, np.array([each.corrupt for each in held]), accounts)
    numbers = sorted(plain.summaries)
    alone = {number: fold(held[number], accounts[number]) for number in numbers}
    assert all(each.is_by_columns for each in alone.values())
    assert {n: repr(each) for n, each in plain.summaries.items()} == {n: repr(alone[n].summary) for n in numbers}
    assert plain.counting.tolist() == [bounds[n] + row for n in numbers for row in alone[n].counting.tolist()]
    return numbers


@pytest.mark.parametrize("seed", range(8))
def test_plain_windows_are_folded_together(seed: int) -> None:
    random = Random(seed)
    sizes, epochs = [3, 20, 200], [0, 7, None]
    worlds = [_make_plain(random, random.choice(sizes), random.choice(epochs), blind=n % 2 > 0) for n in range(6)]
    assert _compare(worlds) == list(range(6))


def test_window_of_an_old_broker_is_plain() -> None:
    world = _make_plain(Random(1), 20, None)
    world.landings = [([replace(span, leader_epoch=NO_EPOCH) for span in spans], ex) for spans, ex in world.landings]
    assert _compare([world]) == [0]


@pytest.mark.parametrize("name", SPOILS)
def test_window_with_anything_else_is_left(name: str) -> None:
    worlds = [_make_plain(Random(1), 20, 7) for _ in range(3)]
    SPOILS[name](worlds[1])
    assert _compare(worlds) == [0, 2]


def test_window_without_lines_is_left() -> None:
    empty = _make_plain(Random(1), 20, 7)
    empty.lines = []
    assert _compare([empty]) == []
    assert _compare([empty, _make_plain(Random(1), 20, 7), empty]) == [1]


@pytest.mark.parametrize("text", [0, 1, 5])
def test_compacted_window_is_plain_without_text(text: int) -> None:
    lines = _make_plain(Random(1), 20, 7).lines
    files = (lines[text:], True), (lines[:text], False)
    typed = [hold_typed(read(memoryview(b"\n".join(file))), FORMATS, compacted=of_file) for file, of_file in files]
    held, accounts = join_typed(typed).lines, make_accounts(_make_plain(Random(1), 20, 7))
    plain = fold_plain(held, np.array([0, len(held)]), np.array([held.corrupt]), [accounts])
    found = {n: repr(each) for n, each in plain.summaries.items()}
    assert found == ({} if text else {0: repr(fold(held, accounts).summary)})
