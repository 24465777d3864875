"""Units hold each line once, and all lines of an ID are in one of them, whatever the file holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from random import Random

import pytest

from onceover.lines.chunks import cut_lines
from onceover.lines.disjoint_units import UnitPiece, count_units, cut_units
from onceover.lines.line_format import Line, encode
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record

SOURCES = [KafkaPartition(generation, p) for generation in ("00c0ffee", "ffffffff") for p in (0, 7)]


class File:
    """Text and a compacted file, in pieces of 1,000 bytes; `reads` counts how often both were read."""

    def __init__(self, lines: list[bytes], compacted: list[bytes]) -> None:
        self._files = [b"\n".join(each) + b"\n" for each in (lines, compacted)]
        self.weight, self.reads = sum(map(len, self._files)), 0

    def read_pieces(self) -> Iterator[tuple[bool, memoryview]]:
        self.reads += 1
        for is_compacted, data in enumerate(self._files):
            for piece in cut_lines(BytesIO(data).readinto, len(data), 1_000, 10_000):
                yield bool(is_compacted), piece


def _slice(piece: UnitPiece, row: int) -> bytes:
    return bytes(piece.lines.data[piece.lines.start[row] : piece.lines.end[row]])


def _encode(source: KafkaPartition, offset: int, value: bytes) -> bytes:
    return encode(Line(Record(source, offset, 1, None, (), value), 5, "V1-00c0ffee00c0ffee", (b"k",)))


def _list_units(file: File, unit_bytes: int) -> list[list[tuple[bool, bytes, bool]]]:
    """Return the lines of each unit: whether it is compacted, its bytes, and whether it is intact."""
    units = []
    for _, pieces in groupby(cut_units(file.read_pieces, file.weight, unit_bytes), attrgetter("unit")):
        units.append(
            [
                (piece.compacted, _slice(piece, row), bool(piece.lines.intact[row]))
                for piece in pieces
                for row in range(len(piece.lines))
            ]
        )
    return units


@pytest.mark.parametrize("seed", range(8))
def test_each_line_is_in_the_unit_of_its_id(seed: int) -> None:
    random = Random(seed)
    ids = random.choice([1, 5, 200, 100_000])
    lines = [
        random.choice([b"torn", b"", b"\xff" * 70])
        if random.random() < 0.1
        else _encode(random.choice(SOURCES), random.randrange(ids), b"%d" % random.randrange(3))
        for _ in range(400)
    ]
    cut = random.randrange(400)
    file = File(lines[:cut], lines[cut:])
    units = _list_units(file, random.choice([1_000, 7_000, 50_000, 1 << 30]))
    held = Counter((compacted, text) for unit in units for compacted, text, _ in unit)
    assert held == Counter((n >= cut, text) for n, text in enumerate(lines) if text)
    of_ids = [{text[:34] for _, text, intact in unit if intact} for unit in units]
    assert sum(map(len, of_ids)) == len(set().union(*of_ids)), "no ID is in two units"


def test_small_window_is_read_once_and_a_larger_one_twice() -> None:
    lines = [_encode(SOURCES[0], n, b"v") for n in range(100)]
    for unit_bytes, reads in ((1 << 30, 1), (5_000, 2)):
        file = File(lines, [])
        assert sum(map(len, _list_units(file, unit_bytes))) == 100
        assert file.reads == reads
    assert count_units(file.weight, 5_000) == -(-file.weight // 5_000)


@pytest.mark.parametrize(("ids", "copies"), [(60, 2), (20, 40), (1, 200)])
def test_units_of_repeated_ids_are_as_large_as_others(ids: int, copies: int) -> None:
    lines = [_encode(SOURCES[0], n, b"v" * 100) for n in range(ids)]
    file = File(lines * copies, [])
    units = [unit for unit in _list_units(file, 8_000) if unit]
    sizes = [sum(len(text) for _, text, _ in unit) for unit in units]
    assert sum(sizes) == len(lines[0]) * ids * copies
    assert max(sizes) <= max(8_000 + copies * len(lines[0]), copies * len(lines[0])), "an ID more at most"
    assert file.reads == 2 + len(units)


def test_window_without_lines_is_one_unit() -> None:
    for file in (File([], []), File([b""] * 5, [b""])):
        assert _list_units(file, 1 << 30) == [[]]
    (piece,) = cut_units(lambda: (), 0)
    assert len(piece.lines) == 0
