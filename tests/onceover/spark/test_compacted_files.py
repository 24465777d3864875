"""Compacted files on the real HDFS hold each window's lines in the order of IDs, byte for byte."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from onceover.config.endpoints import address, locate_hdfs
from onceover.lines.line_format import Line, compute_digest, encode
from onceover.lines.ranges import number_source
from onceover.model.digest import EMPTY
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.raw import zstd_file
from onceover.raw.frozen_file import FrozenFiles
from onceover.raw.hdfs import connect_hdfs
from onceover.spark.compacted_files import digest_files, write
from onceover.spark.fold_tasks import LINE
from onceover.spark.raw_lines import LineFile

pytestmark = [pytest.mark.stack, pytest.mark.spark]
CONTRACT = "V1-00c0ffee00c0ffee"
SOURCES = [KafkaPartition("00c0ffee", 3), KafkaPartition("00c0ffee", 12), KafkaPartition("ffffffff", 0)]


@pytest.fixture
def folder(stack: object) -> Iterator[str]:
    name = f"/raw/t{uuid.uuid4().hex[:10]}"
    yield name
    connect_hdfs(address("webhdfs")).delete(name, recursive=True)


def _frame(spark: SparkSession, windows: dict[int, list[Line]]) -> DataFrame:
    rows = [
        (window_ms, number_source(line.record.source), line.record.offset, bytearray(encode(line)))
        for window_ms, held in windows.items()
        for line in held
    ]
    random.Random(1).shuffle(rows)
    return spark.createDataFrame(rows, LINE)


def _read(file: LineFile) -> bytes:
    return b"".join(FrozenFiles(locate_hdfs()).read_lines(file.path, file.length))


def test_windows_have_a_file_each_in_the_order_of_ids(spark: SparkSession, folder: str) -> None:
    windows = {
        1000 * n: [
            Line(Record(source, offset, 5, b"k", (("h", b"\t\n"),), b"\xff\n" * offset), 7, CONTRACT, (b"1", None))
            for source in SOURCES
            for offset in range(10 * n, 20 * n)
        ]
        for n in range(1, 30)
    }
    selected = _frame(spark, windows)
    files = write(selected, locate_hdfs(), folder)
    assert sorted(file.window_ms for file in files) == sorted(windows)
    for file in files:
        expected = [encode(line) + b"\n" for line in windows[file.window_ms]]
        assert _read(file) == b"".join(expected) == b"".join(sorted(expected))
    digests = {window_ms: compute_digest(line.record for line in held) for window_ms, held in windows.items()}
    assert digest_files(spark, locate_hdfs(), files) == digests
    again = write(selected, locate_hdfs(), folder)
    assert not {file.path for file in again} & {file.path for file in files}, (
        "a task that is tried again appends to none"
    )
    assert write(selected.where("false"), locate_hdfs(), folder) == []
    assert digest_files(spark, locate_hdfs(), []) == {}


@pytest.mark.rare
def test_frames_of_large_records_are_bounded(spark: SparkSession, folder: str) -> None:
    generator = random.Random(3)
    values = [generator.randbytes(400_000).hex().encode() for _ in range(48)]
    values.append(generator.randbytes(9_000_000).hex().encode())
    lines = [Line(Record(SOURCES[0], n, 5, None, (), value), 7, CONTRACT, (b"1",)) for n, value in enumerate(values)]
    (file,) = write(_frame(spark, {7: lines}), locate_hdfs(), folder)
    with connect_hdfs(address("webhdfs")).read(file.path) as reader:
        content = reader.read()
    sizes = zstd_file._read_table(bytearray(content[-1000:]), file.length)["text"].tolist()
    assert max(sizes[:-1]) <= zstd_file.FRAME < sizes[-1] < zstd_file._MOST
    assert _read(file) == b"".join(encode(line) + b"\n" for line in lines)


def test_damaged_line_is_missed_by_the_digest(spark: SparkSession, folder: str) -> None:
    lines = [encode(Line(Record(SOURCES[0], n, 5, None, (), b"value"), 7, CONTRACT, (b"1",))) for n in range(9)]
    text = b"".join(line + b"\n" for line in lines).replace(b"value", b"other", 1)
    content = b"".join(zstd_file.compress_lines([memoryview(text)]))
    connect_hdfs(address("webhdfs")).write(f"{folder}/7.zst", content)
    held = digest_files(spark, locate_hdfs(), [LineFile(7, f"{folder}/7.zst", len(content))])
    assert held[7].records == 8
    assert held.get(8, EMPTY) == EMPTY
