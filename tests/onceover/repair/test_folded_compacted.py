"""Compacted windows folded from the real HDFS hold what was compacted, and what landed since."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.onceover.repair.folded_windows import FIVE, Writer, claim, list_rows, make_dated, start_of, whole
from tests.onceover.spark.contracts import NOON, read_payments

from onceover.config.endpoints import locate_hdfs
from onceover.lines import disjoint_units
from onceover.lines.line_format import compute_digest, decode, encode
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY
from onceover.model.window import from_ms, to_ms
from onceover.raw import zstd_file
from onceover.raw.frozen_file import FrozenFiles, FrozenText
from onceover.raw.zstd_file import compress_lines
from onceover.repair.folded import FoldedRebuild
from onceover.spark import compacted_files

pytestmark = [pytest.mark.stack, pytest.mark.rare, pytest.mark.usefixtures("interpreted")]


def _compact(lines: list[bytes]) -> bytes:
    return b"".join(compress_lines(memoryview(line + b"\n") for line in lines))


def test_compacted_windows_are_rebuilt_as_they_landed(
    spark: SparkSession, folder: Callable[[str, bytes], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = replace(read_payments(tmp_path), horizon_ms=None)
    contracts, writer = Contracts((contract,)), Writer(spark, contract)
    records = [
        make_dated(100 * n + i, NOON + n * FIVE + i % 60, cents=9 * (i > 60)) for n in range(5) for i in range(65)
    ]
    written = writer.write(records)
    lines = [written[n : n + 65] for n in range(0, len(written), 65)]
    monkeypatch.setattr(zstd_file, "FRAME", 1_000)
    files_of = {n: _compact(lines[n][:50]) for n in (0, 1, 4)}
    files_of[2] = _compact([lines[2][0].replace(b"cents", b"sense"), *lines[2][1:50]])
    first = decode(lines[1][0])
    other_columns = replace(first, columns=(*(first.columns or ())[:-1], b"77"))
    texts = {
        1: b"\n".join([*lines[1][40:60], b"torn", encode(other_columns)]),
        2: b"\n".join([lines[2][3], lines[2][55]]),
        3: b"\n".join(lines[3][:60]),
    }
    claimed = [claim(n, whole(100 * n, 100 * n + 60)) for n in range(4)]
    accounted = [whole(0, 360)]
    files = {start_of(n): FrozenText(folder(f"{n}.log", text), len(text)) for n, text in texts.items()}
    compacted = {start_of(n): FrozenText(folder(f"{n}.zst", content), len(content)) for n, content in files_of.items()}
    torn = replace(compacted[start_of(4)], length=compacted[start_of(4)].length - 9)
    compacted |= {start_of(4): torn, start_of(5): replace(torn, path=torn.path + ".gone")}
    offsets = [[*range(50)], [*range(60)], [*range(1, 50), 55], [*range(60)]]
    counted = [[records[65 * n + i] for i in each] for n, each in enumerate(offsets)]
    rows = list_rows(writer.aggregate(list(chain.from_iterable(counted))), 0)
    for unit_bytes in (disjoint_units.UNIT_BYTES, 5_000):
        monkeypatch.setattr(disjoint_units, "UNIT_BYTES", unit_bytes)
        windows = [*claimed, claim(4, whole(400, 450)), claim(5, whole(500, 501))]
        with closing(
            FoldedRebuild(spark, locate_hdfs(), contracts, windows, accounted, (), files, compacted=compacted)
        ) as rebuild:
            found = rebuild.collect()
            assert {start: window.frozen_length for start, window in found.items()} == {
                start_of(n): len(texts.get(n, b"")) for n in range(4)
            }
            digests = [compute_digest(record for record, _ in each) for each in counted]
            assert [window.digest for _, window in sorted(found.items())] == digests
            of_files = [[r for r, _ in each if r.offset % 100 < 50] for each in counted[:3]]
            assert [window.compacted for _, window in sorted(found.items())] == [
                *map(compute_digest, of_files),
                EMPTY,
            ]
            numbers = [(w.lines, w.corrupt_lines, w.digest.records, w.duplicates, w.compacted.records)
                       for _, w in sorted(found.items())]  # fmt: skip
            assert numbers == [(50, 0, 50, 0, 50), (72, 1, 60, 11, 50), (52, 1, 50, 1, 49), (60, 0, 60, 0, 0)]
            assert list_rows(rebuild.aggregate(), 0) == rows
            assert rebuild.failures.keys() == {start_of(4), start_of(5)}
            assert f"{torn.path} is not as compaction wrote it" in rebuild.failures[start_of(4)]
            assert f"{torn.path}.gone is missing" in rebuild.failures[start_of(5)]
            (lost,) = (file.path for start, file in compacted.items() if start == start_of(5))
            selected = rebuild.select_lines([start_of(1), start_of(3)])
            made = compacted_files.write(selected, locate_hdfs(), f"/raw/t{uuid.uuid4().hex[:10]}")
            text = {
                from_ms(file.window_ms): [
                    line
                    for piece in FrozenFiles(locate_hdfs()).read_lines(file.path, file.length)
                    for line in bytes(piece).splitlines()
                ]
                for file in made
            }
            assert text.keys() == {start_of(1), start_of(3)}
            assert text[start_of(3)] == lines[3][:60]
            (doubtful, *others) = text[start_of(1)]
            assert others == lines[1][1:60]
            assert doubtful in (lines[1][0], encode(other_columns)), "both have the same record"
            assert compacted_files.digest_files(spark, locate_hdfs(), made) == {
                to_ms(start_of(n)): digests[n] for n in (1, 3)
            }
            with pytest.raises(PySparkException, match=f"{lost} is missing"):
                rebuild.select_lines([start_of(3), start_of(5)]).collect()
