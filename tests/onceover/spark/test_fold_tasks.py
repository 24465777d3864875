"""A task folds its windows one after the other, and a file that cannot be read fails its window alone."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.raw.files_in_memory import FileInMemory

from onceover.errors import TerminalError
from onceover.lines.accounts import Accounts
from onceover.lines.chunks import cut_lines
from onceover.lines.grouping import Grouping
from onceover.lines.line_format import Line, compute_digest, decode, encode
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.ranges import number_source
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.raw.frozen_file import FrozenText
from onceover.raw.zstd_file import compress_lines, read_frames
from onceover.spark import fold_tasks
from onceover.spark.fold_tasks import SUMMARY, read_outcomes, run_task
from onceover.spark.window_reading import WindowFile

SOURCE, HOUR = KafkaPartition("00c0ffee", 0), 3_600_000
CONTRACT, OTHER = "V1-00c0ffee00c0ffee", "V2-00c0ffee00c0ffee"
COLUMNS = ("k_n", "m_n")
TYPES = pa.schema([(name, pa.int64()) for name in COLUMNS])
FORMATS = ColumnFormats(TYPES, {CONTRACT.encode(): COLUMNS, OTHER.encode(): COLUMNS})
PAIRS = [4 * n + 1 for n in range(10)]  # sums of 2n and 2n + 1
GROUPING = Grouping({"m_n": "sum"}, TYPES)


class Files:
    """Files in memory, of which one cannot be read to its end."""

    def __init__(self, texts: dict[str, bytes], broken: str = "") -> None:
        self._texts, self._broken = texts, broken
        self.read: dict[str, int] = {}

    def read_lines(self, path: str, length: int, chunk: int) -> Generator[memoryview, None, None]:
        at = 0
        if path.endswith(".zst"):
            yield from read_frames(FileInMemory(self._texts[path]).open, path, length, chunk=chunk)
            return

        def fill(view: memoryview) -> None:
            nonlocal at
            if path == self._broken and at:
                raise TerminalError(f"{path} ends early")
            view[:] = self._texts[path][at : at + len(view)]
            at += len(view)
            self.read[path] = self.read.get(path, 0) + len(view)

        yield from cut_lines(fill, length, min(chunk, 100), 1000)


def _window(number: int, text: bytes, compacted: bytes | None = None) -> WindowFile:
    zero = np.zeros(1, np.int64)
    landed = LandedRanges(zero, zero + number_source(SOURCE), zero, zero + 1000, zero - 1, zero > 0)
    names = (CONTRACT.encode(), OTHER.encode())
    accounts = Accounts(number * HOUR, (number + 1) * HOUR, cut_pieces(landed), names, 0)
    file = None if compacted is None else FrozenText(f"/{number}.zst", len(compacted))
    return WindowFile(number * HOUR, f"/{number}", len(text), accounts, file)


def _text(number: int, rows: int, contract: str = CONTRACT) -> bytes:
    records = [(Record(SOURCE, n, 1, None, (), b"v"), (b"%d" % (n // 2), b"%d" % n)) for n in range(rows)]
    lines = (Line(record, number * HOUR, contract, columns) for record, columns in records)
    return b"".join(encode(line) + b"\n" for line in lines)


def _run(
    files: Files, windows: list[WindowFile], unit_bytes: int = 1 << 20
) -> tuple[dict[int, list[int]], dict[int, Any]]:
    rows: dict[int, list[int]] = {}
    outcomes: dict[int, Any] = {}
    for batch in run_task(files, windows, FORMATS, GROUPING, unit_bytes):
        for row in batch.to_pylist():
            if row[SUMMARY] is None:
                rows.setdefault(row["window_ms"], []).append(row["m_n"])
            else:
                assert row["m_n"] is None
                outcomes |= read_outcomes(row[SUMMARY])
    return rows, outcomes


@pytest.mark.parametrize("batch", [1, 7, 65_536])
def test_each_window_gives_its_groups_and_one_summary(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(fold_tasks, "_BATCH", batch)
    texts = {0: _text(0, 5), 1: b"", 2: _text(2, 9) + b"torn", 3: b"foreign\n" * 50}
    windows = [_window(number, text) for number, text in texts.items()]
    rows, outcomes = _run(Files({f"/{number}": text for number, text in texts.items()}), windows)
    assert rows == {0: [1, 5, 4], 2 * HOUR: [1, 5, 9, 13, 8]}
    summaries = {number: outcomes[number * HOUR] for number in texts}
    assert {number: (s.lines, s.corrupt, s.digest.records) for number, s in summaries.items()} == {
        0: (5, 0, 5),
        1: (0, 0, 0),
        2: (10, 1, 9),
        3: (50, 50, 0),
    }


def test_file_that_cannot_be_read_fails_its_window_alone() -> None:
    texts = {f"/{number}": _text(number, 20) for number in range(3)}
    windows = [_window(number, text) for number, text in enumerate(texts.values())]
    rows, outcomes = _run(Files(texts, broken="/1"), windows)
    assert rows == {0: PAIRS, 2 * HOUR: PAIRS}
    assert outcomes[HOUR] == "/1 ends early"
    assert [isinstance(outcomes[n * HOUR], WindowSummary) for n in range(3)] == [True, False, True]


def test_window_that_counts_by_value_is_read_no_further() -> None:
    texts = {"/0": _text(0, 500), "/1": _text(1, 500, OTHER), "/2": _text(2, 5)}
    files = Files(texts)
    rows, outcomes = _run(files, [_window(number, text) for number, text in enumerate(texts.values())], 20_000)
    assert rows == {0: [4 * n + 1 for n in range(250)], 2 * HOUR: [1, 5, 4]}
    assert outcomes[HOUR] is None
    assert files.read["/1"] < 1.5 * len(texts["/1"]), "all IDs, and the first unit"


@pytest.mark.parametrize(("unit_bytes", "times"), [(200_000, 1), (40_000, 2), (5_000, 2)])
def test_large_window_gives_the_same_groups_unit_by_unit(unit_bytes: int, times: int) -> None:
    text = _text(0, 900)
    files = Files({"/0": text})
    rows, outcomes = _run(files, [_window(0, text)], unit_bytes)
    assert {window: sorted(sums) for window, sums in rows.items()} == {0: [4 * n + 1 for n in range(450)]}
    assert outcomes[0].lines == 900
    assert files.read == {"/0": times * len(text)}


def test_text_and_compacted_file_fold_together() -> None:
    lines = [_text(number, 20).splitlines() for number in range(3)]
    files = [b"".join(compress_lines(memoryview(line + b"\n") for line in of[:12])) for of in lines]
    files[1] = files[1][:-1]
    texts = [b"", b"", b"\n".join([b"torn", *lines[2][10:]])]
    windows = [_window(number, *each) for number, each in enumerate(zip(texts, files, strict=True))]
    data = {f"/{number}": text for number, text in enumerate(texts)}
    rows, outcomes = _run(Files({**data, **{f"/{n}.zst": each for n, each in enumerate(files)}}), windows)
    assert rows == {0: PAIRS[:6], 2 * HOUR: PAIRS}
    assert outcomes[HOUR].startswith("/1.zst is not as compaction wrote it: ")
    one, two = outcomes[0], outcomes[2 * HOUR]
    assert (one.lines, one.corrupt, one.digest) == (12, 0, Digest(*map(int, one.compacted)))
    assert (two.lines, two.corrupt, two.digest.records) == (23, 1, 20)
    whole = compute_digest(decode(line).record for line in lines[2][:12])
    assert Digest(*map(int, two.compacted)) == whole


def test_compacted_file_weighs_more_than_its_bytes() -> None:
    small, large = _window(0, b"x" * 1000), _window(1, b"x" * 1000, b"y" * 1000)
    assert small.weight == 1000
    assert large.weight > 5_000


def test_wide_groups_go_on_in_batches_of_some_mib() -> None:
    grouping = Grouping({"m": "bit_or"}, pa.schema([("k", pa.int64()), ("m", pa.binary())]))
    rows = pa.table({"k": pa.array(range(30_000), pa.int64()), "m": pa.array([7] * 30_000, pa.int32())})
    groups = grouping.group(rows).add_column(0, "window_ms", pa.array([0] * 30_000, pa.int64()))
    windows: list[fold_tasks.GroupedWindows] = [({number: None}, groups) for number in range(2)]
    batches = list(fold_tasks.make_batches(windows, grouping))
    assert sum(map(len, batches)) == 60_002, "a row of outcomes each time"
    assert max(batch.nbytes for batch in batches) < 17 << 20
