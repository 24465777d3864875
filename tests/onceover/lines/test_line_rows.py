"""Lines as rows, read in splits, sent to parts by ID and folded there, give what the window's fold gives as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.lines.plain_verdicts import judge
from tests.onceover.lines.world_accounts import make_accounts
from tests.onceover.lines.worlds import CONTRACTS, World, evaluate, make_world

from onceover.lines.accounts import Accounts
from onceover.lines.folded_window import FoldedWindow, Shuffled
from onceover.lines.judge import NO_WINDOW
from onceover.lines.line_rows import EVALUATED, fold_rows, make_rows
from onceover.lines.read import read
from onceover.lines.records import read_records
from onceover.lines.reference import Line, decode, encode
from onceover.lines.typed_lines import ColumnFormats, hold_typed
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record

FORMATS = ColumnFormats(pa.schema([("k_a", pa.string())]), {name.encode(): ("k_a",) for name in CONTRACTS})


def _make_rows(world: World, accounts: Accounts, random: Random, *, every: bool) -> pa.Table:
    """Return the rows of all splits, evaluated under the contract of each ID; the column tells how."""
    cuts = [0, *sorted(random.randint(0, len(world.lines)) for _ in range(3)), len(world.lines)]
    tables = []
    for first, after in pairwise(cuts):
        lines = read(memoryview(b"\n".join(world.lines[first:after])))
        typed = hold_typed(lines, first * 1000, FORMATS)
        typed = replace(typed, lines=replace(typed.lines, compacted=typed.lines.offset % 3 == 0))
        tables.append(make_rows(lines, typed, accounts, 3, every=every))
    rows = pa.concat_tables(tables)
    evaluated: list[int | None] = []
    columns: list[str | None] = []
    for row in rows.select(["place", "kafka_timestamp", "key", "value", "k_a"]).to_pylist():
        assert (row["place"] is None) == (row["kafka_timestamp"] is None)
        if row["place"] is None:
            evaluated.append(None)
            columns.append(row["k_a"])
        else:
            record = Record(KafkaPartition("00c0ffee", 0), 0, row["kafka_timestamp"], row["key"], (), row["value"])
            event_ms = evaluate(Line(record, 0, CONTRACTS[0]), CONTRACTS[row["place"]])
            evaluated.append(NO_WINDOW if event_ms is None else event_ms)
            columns.append(f"by value under {row['place']}")
    at = rows.column_names.index("k_a")
    return rows.set_column(at, "k_a", pa.array(columns, pa.string())).append_column(
        EVALUATED, pa.array(evaluated, pa.int64())
    )


def _fold_parts(rows: pa.Table, accounts: Accounts) -> list[FoldedWindow | Shuffled]:
    part = rows.column("part").to_numpy()
    return [fold_rows(rows.filter(pa.array(part == number)), accounts) for number in range(3)]


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_shuffled_rows_add_up_to_the_window(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, random.choice([3, 100, 1000]), 1500)
    expected, accounts = judge(world), make_accounts(world)
    parts = _fold_parts(_make_rows(world, accounts, random, every=False), accounts)
    if Shuffled.NEEDS_VALUE in parts:  # lines that differ in columns alone
        parts = _fold_parts(_make_rows(world, accounts, random, every=True), accounts)
    folded = [part for part in parts if isinstance(part, FoldedWindow)]
    assert len(folded) == 3
    summary = folded[2].summary + folded[0].summary + folded[1].summary
    names = ("lines", "corrupt", "misplaced", "rejected", "stray", "unlanded", "conflicts", "misdated", "foreign")
    assert [getattr(summary, n) for n in names] == [expected.numbers[n] for n in names]
    assert summary.digest == sum((digest for digest, _ in expected.counted.values()), EMPTY)
    held = sum((digest for each, (digest, _) in expected.counted.items() if each[1] % 3 == 0), EMPTY)
    assert Digest(*map(int, summary.compacted)) == held
    assert summary.unknown == tuple(name.encode() for name in expected.unknown)
    counted = Counter(
        value.startswith("by value") if value else False
        for part in folded
        for value in part.rows.column("k_a").to_pylist()
    )
    assert counted.total() == len(expected.counted)
    assert counted[True] == summary.by_value
    assert summary.by_value >= sum(by_value for _, by_value in expected.counted.values())


@pytest.mark.parametrize("seed", range(3))
def test_rows_carry_the_bytes_of_each_line_if_wanted(seed: int) -> None:
    random = Random(seed)
    world = make_world(random, 100, 500)
    accounts = make_accounts(world)
    text = b"\n".join(world.lines)
    lines = read(memoryview(text))
    typed = hold_typed(lines, 0, FORMATS)
    intact = [bytes(lines.data[a:b]) for a, b in zip(lines.start[lines.intact], lines.end[lines.intact], strict=True)]
    carried = make_rows(lines, typed, accounts, 3, every=False, whole=True)
    assert carried.column("line").to_pylist() == [*intact, None]
    plain = make_rows(lines, typed, accounts, 3, every=False)
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
        lines = read(memoryview(text))
        rows = make_rows(lines, hold_typed(lines, 0, FORMATS), accounts, 3, every=True)
        assert rows.num_rows == 1, "each piece has a row"
        folded = fold_rows(rows.append_column(EVALUATED, pa.nulls(1, pa.int64())), accounts)
        assert isinstance(folded, FoldedWindow)
        assert (folded.summary.lines, folded.summary.corrupt, len(folded.rows)) == (corrupt, corrupt, 0)
