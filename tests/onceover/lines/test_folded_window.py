"""A window's file, folded unit by unit with its columns, gives what the reference counts, or says that it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from io import BytesIO
from operator import add
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.lines.plain_verdicts import NUMBERS, decode_or_none, hash_content, is_inside, judge
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, END, START, Reading, World, make_world

from onceover.lines.accounts import Accounts
from onceover.lines.chunks import cut_lines
from onceover.lines.disjoint_units import UnitPiece, cut_units
from onceover.lines.folded_window import OF_LINE, FoldedUnit, fold_units
from onceover.lines.line_format import Line, encode
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.ranges import NumberedRanges, number_source
from onceover.lines.read import read
from onceover.lines.typed_lines import ColumnFormats, hold_typed, join_typed
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import Record

FORMATS = ColumnFormats(pa.schema([("k_a", pa.string())]), {name.encode(): ("k_a",) for name in CONTRACTS})
SOURCE = KafkaPartition("00c0ffee", 0)
_ZERO = np.zeros(1, np.int64)
_LANDED = LandedRanges(_ZERO, _ZERO + number_source(SOURCE), _ZERO, _ZERO + 10, _ZERO - 1, _ZERO > 0)


def _fold(text: bytes, chunk: int, accounts: Accounts, unit_bytes: int = 1 << 30) -> list[FoldedUnit | None]:
    def read_pieces() -> Iterator[tuple[bool, memoryview]]:
        pieces = cut_lines(BytesIO(text).readinto, len(text), chunk, max(chunk, 10_000))
        return ((False, piece) for piece in pieces)

    return list(fold_units(cut_units(read_pieces, len(text), unit_bytes), accounts, FORMATS))


def drop_doubtful(world: World) -> None:
    """Leave the lines with the contract of their ID, and of several lines of a reading with one record the first."""
    first: dict[tuple[object, ...], bytes] = {}
    left: list[bytes] = []
    for text in world.lines:
        line = decode_or_none(text)
        if line is not None:
            contract = world.find_contract((line.record.source, line.record.offset))
            is_readable = line.event_ms is None or (line.columns is not None and len(line.columns) == 1)
            alike = first.setdefault((line.record, world.find_reading(line)), text)
            if line.contract != contract or not is_readable or alike != text:
                continue
        left.append(text)
    world.lines = left


def _list_rows(world: World) -> Counter[bytes | None]:
    """Return the column of each record that counts."""
    column: dict[tuple[Reading, object], bytes | None] = {}
    for line in map(decode_or_none, world.lines):
        if line is not None and is_inside(line):
            column[world.find_reading(line), hash_content(line.record)] = (line.columns or (None,))[0]
    counted = judge(world).counted.items()
    return Counter(column[(*each, found.epoch), content] for (each, content), found in counted)


@pytest.mark.parametrize("seed", range(8))
def test_window_without_doubtful_lines_gives_its_columns(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, random.choice([3, 100, 1000]), 1500)
    drop_doubtful(world)
    expected, accounts = judge(world), make_accounts(world)
    text = b"\n".join([b"", *world.lines, b""])
    for chunk, unit_bytes in ((700, 1 << 30), (1 << 20, 1 << 30), (7_000, 60_000)):
        folded = _fold(text, chunk, accounts, unit_bytes)
        summary = reduce(add, (unit.summary for unit in folded if unit))
        assert None not in folded
        assert (len(folded) > 1) == (unit_bytes < len(text))
        assert [getattr(summary, n) for n in NUMBERS] == [expected.numbers[n] for n in NUMBERS]
        assert summary.digest == expected.digest
        columns = [v for unit in folded if unit for v in unit.rows.column("k_a").to_pylist()]
        counted = Counter(None if v is None else v.encode() for v in columns)
        assert counted == _list_rows(world)


@pytest.mark.parametrize("seed", range(5))
def test_window_with_records_by_value_ends_in_none(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, 1000, 1500)
    if any(each.by_value for each in judge(world).counted.values()):
        text = b"\n".join(world.lines)
        for unit_bytes in (1 << 30, 10_000):
            assert _fold(text, 1_000, make_accounts(world), unit_bytes)[-1] is None


def test_column_left_out_or_contract_of_a_stray_needs_the_value() -> None:
    names = (CONTRACTS[0].encode(), CONTRACTS[1].encode())
    accounted = NumberedRanges.of([(OffsetRange(SOURCE, 0, 100), 0)])
    accounts = Accounts(START, END, cut_pieces(_LANDED), names, 0, accounted=accounted)
    left_out = encode(Line(Record(SOURCE, 1, 1, None, (), b"v"), START, CONTRACTS[0], None))
    for text in (left_out, _line(99, b"k", contract=CONTRACTS[1])):
        texts = _line(0, b"k") + b"\n" + text
        assert _fold(texts, 1000, accounts) == [None]
    assert _fold(left_out[:-1], 1000, accounts) != [None]


def test_empty_file_and_file_of_newlines_have_no_lines() -> None:
    accounts = make_accounts(make_world(Random(1), 3, 3))
    for text in (b"", b"\n", b"\n\n\n"):
        (folded,) = _fold(text, 2, accounts)
        assert folded
        assert (folded.summary.lines, folded.summary.corrupt, folded.rows.num_rows) == (0, 0, 0)
        assert folded.rows.schema == FORMATS.schema


def test_whole_lines_come_with_their_columns() -> None:
    accounts = Accounts(START, END, cut_pieces(_LANDED), (CONTRACTS[0].encode(),), 0)
    texts = [_line(n, b"x") for n in (2, 0, 1)]
    piece = UnitPiece(0, read(memoryview(b"\n".join([texts[0], b"torn", *texts[1:]]))), compacted=False)
    (folded,) = fold_units([piece], accounts, FORMATS, whole=True)
    assert folded
    assert folded.rows.column("k_a").to_pylist() == ["x"] * 3
    assert folded.rows.select(OF_LINE).to_pylist() == [
        {"source": number_source(SOURCE), "offset": n, "line": texts[(1, 2, 0)[n]]} for n in range(3)
    ]


def _line(offset: int, *columns: bytes | None, contract: str = CONTRACTS[0]) -> bytes:
    return encode(Line(Record(SOURCE, offset, 1, None, (), b"v"), START, contract, columns))


def test_lines_of_two_contracts_have_all_columns_in_order() -> None:
    kinds = [("k_a", pa.string()), ("m_n", pa.decimal128(28, 2)), ("m_at", pa.timestamp("us", "UTC"))]
    names = {CONTRACTS[0].encode(): ("k_a", "m_n"), CONTRACTS[1].encode(): ("m_at", "k_a", "m_n")}
    formats = ColumnFormats(pa.schema(kinds), names)
    texts = [
        _line(0, b"a", b"1.50"),
        _line(1, b"2026-03-01 12:00:00.25", b"b\n", None, contract=CONTRACTS[1]),
        b"torn",
        _line(2, None, b"0E-7"),
        _line(3, b"a", b"not a number"),
        _line(4, b"a"),
        _line(5, b"a", b"7", contract="V9-ffffffffffffffff"),
        _line(6, b"2026-03-01 12:00:00", b"\\", b"-3", contract=CONTRACTS[1]),
    ]
    held = hold_typed(read(memoryview(b"\n".join(texts))), formats)
    assert held.columns.schema == formats.schema
    assert held.lines.offset.tolist() == list(range(7))
    assert held.lines.has_columns.tolist() == [True, True, True, False, False, False, True]
    assert held.columns.column("k_a").to_pylist() == ["a", "b\n", None, None, None, None, "\\"]
    assert [str(v) for v in held.columns.column("m_n").to_pylist()][-1] == "-3.00"
    both = join_typed([held, held])
    assert (len(both), both.lines.corrupt, both.columns.num_rows) == (14, 2, 14)


def test_one_unreadable_line_of_many_is_found() -> None:
    formats = ColumnFormats(pa.schema([("m_n", pa.int64())]), {CONTRACTS[0].encode(): ("m_n",)})
    texts = [_line(n, b"%d" % n if n != 700 else b"seven") for n in range(2000)]
    held = hold_typed(read(memoryview(b"\n".join(texts))), formats)
    left_out = [n for n, each in enumerate(held.lines.has_columns.tolist()) if not each]
    assert 700 in left_out
    assert len(left_out) < 64
    column = held.columns.column("m_n").to_pylist()
    assert column == [None if n in left_out else n for n in range(2000)]
