"""A Parquet file gives the lines that it was made of, byte for byte, or an error that names it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.lines.parquet_files import make_table, write_table

from onceover.errors import TerminalError, UnreachableError
from onceover.lines.read import read
from onceover.lines.reference import Line, encode
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.raw import parquet_lines
from onceover.raw.parquet_lines import read_stored

PATH, CONTRACT = "/raw/t/2026-03-01/1200.0.parquet", "V1-00c0ffee00c0ffee"
AWKWARD = [None, b"", b"\\N", b"\\\\N", b"a\tb\nc\rd\\t", b"\\", b"\xff\x00"]


class Files:
    """One file in memory, which breaks off at a byte."""

    def __init__(self, data: bytes, broken: int | None = None) -> None:
        self._data, self._broken = data, broken
        self.asked: list[tuple[int, int]] = []

    def read_into(self, path: str, start: int, view: memoryview) -> None:
        assert path == PATH
        self.asked.append((start, start + len(view)))
        if self._broken is not None and start + len(view) > self._broken >= start:
            raise UnreachableError("a DataNode does not answer")
        view[:] = self._data[start : start + len(view)]


def _make_lines() -> list[bytes]:
    values = itertools.product((0, -(2**63), 2**63 - 1), AWKWARD, AWKWARD)
    return [
        encode(
            Line(
                Record(KafkaPartition(("00c0ffee", "ffffffff")[n % 2], n % 3), n, stamp, key, (("h", b"\t"),), value),
                1_772_366_400_000 + n,
                CONTRACT if n % 5 else "R2-0123456789abcdef",
                None if n % 7 == 0 else (b"x\ty", None, b""),
            )
        )
        for n, (stamp, key, value) in enumerate(values)
    ]


LINES = _make_lines()
TEXT = b"".join(line + b"\n" for line in LINES)
FILE = write_table(make_table(LINES), group=10)


def _read(files: Files, length: int = len(FILE), start: int = 0, end: int | None = None) -> bytes:
    pieces = list(read_stored(files, PATH, length, start, end))
    assert [at for at, _ in pieces] == [sum(len(p) for _, p in pieces[:n]) for n in range(len(pieces))]
    return b"".join(bytes(text) for _, text in pieces)


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_rows_are_the_lines_that_they_were(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(parquet_lines, "_SMALL", small)
    files = Files(FILE)
    assert _read(files) == TEXT
    assert read(memoryview(_read(Files(FILE)))).intact.all()
    assert max(end for _, end in files.asked) <= len(FILE)
    assert (len(files.asked) == 1) == bool(small)
    assert _read(Files(write_table(make_table([]))), len(write_table(make_table([])))) == b""


def test_splits_of_a_file_hold_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_lines, "_SMALL", 0)
    bounds = [0, 1, 4, 5, 999, 1000, 5000, 5001, len(FILE)]
    splits = [_read(Files(FILE), start=a, end=b) for a, b in itertools.pairwise(bounds)]
    assert b"".join(splits) == TEXT
    assert sum(bool(split) for split in splits) > 2


def test_pieces_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_lines, "CHUNK", 10_000)
    source, random = KafkaPartition("00c0ffee", 0), Random(1)
    records = (Record(source, n, 0, None, (), random.randbytes(3000)) for n in range(50))
    lines = [encode(Line(record, 0, CONTRACT, (b"",))) for record in records]
    file = write_table(make_table(lines))
    pieces = [bytes(text) for _, text in read_stored(Files(file), PATH, len(file))]
    assert max(map(len, pieces)) < 15_000
    assert b"".join(pieces).count(b"\n") == 50


def test_row_whose_hash_differs_is_one_corrupt_line() -> None:
    for name, value in (("hash", 1), ("offset", 10**18), ("event_ms", 5), ("headers", b"\t"), ("contract", "V1"),
                        ("generation", "0000000g"), ("key", b"k"), ("columns", b"x")):  # fmt: skip
        table = make_table(LINES[1:10])
        column = pa.array([*table.column(name).to_pylist()[:-1], value], table.schema.field(name).type)
        file = write_table(table.set_column(table.column_names.index(name), name, column))
        found = read(memoryview(_read(Files(file), len(file))))
        assert np.flatnonzero(~found.intact).tolist() == [8], name


def _set(name: str, *values: object, kind: pa.DataType | None = None) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        column = pa.array([*values, *[values[-1]] * (len(table) - len(values))], kind or table.schema.field(name).type)
        return table.set_column(table.column_names.index(name), name, column)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_set("offset", 5, None), "column `offset` has nulls"),
        (_set("generation", "00c0ffee", None), "column `generation` has nulls"),
        (_set("event_ms", None), "column `event_ms` has nulls"),
        (_set("hash", None), "column `hash` has nulls"),
        (_set("generation", "00c0ffee", "c0ffee"), "a generation has not 8 digits"),
        (_set("generation", b"\xff" * 8, kind=pa.binary()), "Invalid UTF8"),
        (_set("kafka_partition", 5, 100_000), "wider than 5 digits"),
        (_set("kafka_partition", -1), "wider than 5 digits"),
        (_set("event_ms", -1), "an event time is not in"),
        (_set("event_ms", 10**13), "an event time is not in"),
        (_set("headers", b"", b"a\nb"), "a field has a newline"),
        (_set("offset", "five", kind=pa.string()), "Failed to parse string"),
        (_set("key", [1], kind=pa.list_(pa.int64())), "Unsupported cast"),
        (lambda table: table.drop_columns(["contract"]), "it has no columns `contract`"),
        (lambda table: pa.table({"a": [1, 2]}), "it has no columns `generation`"),
        (lambda table: table.append_column("offset", table.column("offset")), "it has 2 columns `offset`"),
    ],
)
def test_values_that_no_line_has_are_an_error(change: Callable[[pa.Table], pa.Table], why: str) -> None:
    file = write_table(change(make_table(LINES)))
    with pytest.raises(TerminalError, match=rf"^{PATH} is not as compaction wrote it: .*{why}.*`onceover explain`"):
        _read(Files(file), len(file))


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_damaged_bytes_end_in_lines_or_an_error(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(parquet_lines, "_SMALL", small)
    random, lines, errors = Random(7), set(LINES), list[str]()
    cases = [FILE[:n] for n in (0, 1, 4, 12, len(FILE) // 2, len(FILE) - 1)]
    cases += [random.randbytes(len(FILE)), b"PAR1" * 100, b"", FILE + b"x", TEXT]
    for _ in range(100):
        at = random.randrange(len(FILE)) if random.random() < 0.5 else len(FILE) - 1 - random.randrange(4000)
        cases.append(FILE[:at] + random.randbytes(1) + FILE[at + 1 :])
    for data in cases:
        error = ""
        try:
            found = read(memoryview(_read(Files(data), len(data))))
        except TerminalError as raised:
            error = str(raised)
        if error:
            errors.append(error)
        else:
            intact = zip(found.start[found.intact].tolist(), found.end[found.intact].tolist(), strict=True)
            assert {bytes(found.data[a:b]) for a, b in intact} <= lines
    assert len(errors) > 20
    assert all(error.startswith(f"{PATH} is not as compaction wrote it: ") for error in errors)
    assert not any("\n" in error for error in errors)


def test_file_that_cannot_be_read_is_the_readers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for small in (0, 1 << 20):
        monkeypatch.setattr(parquet_lines, "_SMALL", small)
        for at in (5, len(FILE) // 2, len(FILE) - 1):
            with pytest.raises(UnreachableError, match="a DataNode does not answer"):
                _read(Files(FILE, broken=at))
