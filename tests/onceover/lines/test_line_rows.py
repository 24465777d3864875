"""Lines as rows, evaluated by VALUE and folded unit by unit, give what the reference counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from io import BytesIO
from itertools import groupby
from operator import add, attrgetter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.lines.plain_verdicts import NUMBERS, judge
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, World, evaluate, make_world

from onceover.lines.chunks import cut_lines
from onceover.lines.disjoint_units import UnitPiece, cut_units
from onceover.lines.judge import NO_WINDOW
from onceover.lines.line_format import Line, decode, encode
from onceover.lines.line_rows import EVALUATED, fold_rows, make_rows
from onceover.lines.read import read
from onceover.lines.records import read_records
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record


def _cut(world: World, unit_bytes: int) -> Iterator[UnitPiece]:
    text = b"\n".join(world.lines)

    def read_pieces() -> Iterator[tuple[bool, memoryview]]:
        buffer = BytesIO(text)
        return ((False, piece) for piece in cut_lines(buffer.readinto, len(text), 10_000, 20_000))

    return cut_units(read_pieces, len(text), unit_bytes)


def _evaluate(rows: pa.Table) -> pa.Table:
    """Evaluate each record under the contract of its ID; the column tells how."""
    evaluated: list[int | None] = []
    columns: list[str | None] = []
    for row in rows.select(["place", "kafka_timestamp", "key", "value"]).to_pylist():
        if row["place"] is None:
            evaluated.append(None)
            columns.append(None)
        else:
            record = Record(KafkaPartition("00c0ffee", 0), 0, row["kafka_timestamp"], row["key"], (), row["value"])
            event_ms = evaluate(Line(record, 0, CONTRACTS[0]), CONTRACTS[row["place"]])
            evaluated.append(NO_WINDOW if event_ms is None else event_ms)
            columns.append(f"by value under {row['place']}")
    return rows.append_column("k_a", pa.array(columns, pa.string())).append_column(
        EVALUATED, pa.array(evaluated, pa.int64())
    )


@pytest.mark.parametrize("seed", range(12))
def test_units_of_rows_add_up_to_the_window(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, random.choice([3, 100, 1000]), 1500)
    expected, accounts = judge(world, every=True), make_accounts(world)
    folded = []
    for _, unit in groupby(_cut(world, random.choice([1 << 30, 30_000])), attrgetter("unit")):
        rows = pa.concat_tables(make_rows(piece, accounts) for piece in unit)
        folded.append(fold_rows(_evaluate(rows), accounts))
    summary = reduce(add, (each.summary for each in folded))
    assert [getattr(summary, n) for n in NUMBERS] == [expected.numbers[n] for n in NUMBERS]
    assert summary.digest == expected.digest
    assert summary.unknown == tuple(name.encode() for name in expected.unknown)
    counted = [value for each in folded for value in each.rows.column("k_a").to_pylist()]
    assert len(counted) == len(expected.counted) == summary.by_value
    assert all(value.startswith("by value") for value in counted)


@pytest.mark.parametrize("seed", range(3))
def test_rows_carry_the_bytes_of_each_line_if_wanted(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, 100, 500)
    accounts = make_accounts(world)
    lines = read(memoryview(b"\n".join(world.lines)))
    intact = [bytes(lines.data[a:b]) for a, b in zip(lines.start[lines.intact], lines.end[lines.intact], strict=True)]
    piece = UnitPiece(0, lines, compacted=True)
    carried, plain = make_rows(piece, accounts, whole=True), make_rows(piece, accounts)
    assert carried.column("line").to_pylist() == [*intact, None]
    assert carried.column("compacted").to_pylist() == [*[True] * len(intact), None]
    assert plain.column("line").null_count == len(plain)
    assert plain.drop_columns(["line"]) == carried.drop_columns(["line"])


def test_record_of_a_line_is_what_was_written() -> None:
    awkward = [None, b"", b"\\N", b"\\\\N", b"a\tb\nc\rd\\t", b"\\", b"\xff\x00"]
    records = [
        Record(KafkaPartition("00c0ffee", 7), n, stamp, key, (("h", b"1"),) if n % 2 else (), value)
        for n, (stamp, key, value) in enumerate(
            (stamp, key, value) for stamp in (0, -(2**63), 2**63 - 1) for key in awkward for value in awkward
        )
    ]
    text = b"torn\n" + b"\n".join(encode(Line(r, 5, CONTRACTS[0], (b"x\ty", None))) for r in records)
    lines = read(memoryview(text))
    rows = np.flatnonzero(lines.intact)
    found = read_records(lines, rows)
    assert found.column("kafka_timestamp").to_pylist() == [r.kafka_timestamp for r in records]
    assert found.column("key").to_pylist() == [r.key for r in records]
    assert found.column("value").to_pylist() == [r.value for r in records]
    assert set(found.column("headers").to_pylist()) == {b"", b"h\\=1"}
    assert read_records(lines, rows[:0]).num_rows == 0
    assert decode(text.split(b"\n")[1]).record == records[0]


def test_rows_of_a_piece_without_lines_are_its_corrupt_lines() -> None:
    accounts = make_accounts(make_world(Random(1), 3, 3))
    for text, corrupt in ((b"\n", 0), (b"torn\n\nfile", 2)):
        rows = make_rows(UnitPiece(0, read(memoryview(text)), compacted=False), accounts)
        assert rows.num_rows == 1, "each piece has a row"
        folded = fold_rows(rows.append_column(EVALUATED, pa.nulls(1, pa.int64())), accounts)
        assert (folded.summary.lines, folded.summary.corrupt, len(folded.rows)) == (corrupt, corrupt, 0)
