"""Window files read and folded by tasks, each of which has several: nothing moves between windows but rows to sum.

task numbers -> each task's files, to their frozen length -> lines -> folded window by window
-> a row for each group of its records that count, and one for each window with its summary
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from onceover.errors import OnceoverError
from onceover.lines.accounts import Accounts
from onceover.lines.chunks import Piece
from onceover.lines.folded_window import FoldedWindow, Shuffled, fold_window
from onceover.lines.grouping import Grouping
from onceover.lines.packing import pack
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats
from onceover.raw.frozen_file import FrozenFiles, FrozenText
from onceover.spark.line_columns import LineColumns

SUMMARY: Final = "__onceover_summary"  # no key or measure has that name
_OWN = [("window_ms", pa.int64()), (SUMMARY, pa.binary())]
_BATCH = 65_536  # rows that go to the JVM together
_EXPANSION = 8  # bytes of text for a byte of a compacted file, about


@dataclass(frozen=True, slots=True)
class WindowFile:
    """A window's text with its frozen length, its compacted file if it has one, and what its lines are judged
    by. With `by_value`, VALUE gives the columns of all its records."""

    window_ms: int
    path: str
    length: int
    accounts: Accounts
    compacted: FrozenText | None = None
    by_value: bool = False

    @property
    def weight(self) -> int:
        """The bytes of text that take as long to fold."""
        return self.length + (_EXPANSION * self.compacted.length if self.compacted else 0)


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """A window's summary, or why it has none: it is left to the shuffle, or its file could not be read (`error`). That
    of a `part` is of some of its IDs."""

    summary: WindowSummary | None = None
    shuffled: Shuffled | None = None
    error: str | None = None
    part: int = 0


class LineReader(Protocol):
    """Reads a file's lines to its frozen length, as `FrozenFiles` does."""

    def read_lines(self, path: str, length: int) -> Generator[Piece, None, None]: ...


def fold_files(spark: SparkSession, address: str, files: Sequence[WindowFile], columns: LineColumns) -> DataFrame:
    """Return `window_ms`, SUMMARY, and the grouped columns: a row with an outcome for each window, which
    `read_outcome` reads, and one for each group of its records that count, whose SUMMARY is null.

    Lazy, and each action reads HDFS again.
    """
    packed = pack([file.weight for file in files], spark.sparkContext.defaultParallelism)
    schema = StructType([StructField("window_ms", LongType()), StructField(SUMMARY, BinaryType()), *columns.grouped])
    if not packed:
        return spark.createDataFrame([], schema)
    planned = spark.sparkContext.broadcast(
        ([[files[place] for place in task] for task in packed], columns.formats, columns.grouping)
    )

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks, formats, grouping = planned.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run_task(FrozenFiles(address), tasks[number], formats, grouping)

    return spark.range(0, len(packed), 1, len(packed)).mapInArrow(run, schema)


def make_outcome(outcome: WindowOutcome) -> bytes:
    """Return what the driver reads."""
    return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)


def read_outcome(data: bytes) -> WindowOutcome:
    """Return what a task wrote."""
    outcome: WindowOutcome = pickle.loads(data)
    return outcome


def run_task(
    reader: LineReader, files: Sequence[WindowFile], formats: ColumnFormats, grouping: Grouping
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these windows. A file that cannot be read fails its window alone."""
    schema = pa.schema([*_OWN, *grouping.schema])
    waiting: list[pa.Table] = []
    for rows in _fold_each(reader, files, formats, grouping, schema):
        waiting.append(rows)
        if sum(len(each) for each in waiting) >= _BATCH:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches(_BATCH)
            waiting = []
    if waiting:
        yield from pa.concat_tables(waiting).combine_chunks().to_batches(_BATCH)


def _fold_each(
    reader: LineReader, files: Sequence[WindowFile], formats: ColumnFormats, grouping: Grouping, schema: pa.Schema
) -> Iterator[pa.Table]:
    for file in files:
        outcome, rows = _fold_file(reader, file, formats)
        if rows is not None:
            yield _add_window(grouping.group(rows), file.window_ms, schema)
        yield pa.Table.from_pylist([{"window_ms": file.window_ms, SUMMARY: make_outcome(outcome)}], schema)


def _fold_file(reader: LineReader, file: WindowFile, formats: ColumnFormats) -> tuple[WindowOutcome, pa.Table | None]:
    # No thread reads ahead: it would wait for Python's lock, and the connection's buffer fills meanwhile, too.
    try:
        with (
            closing(reader.read_lines(file.path, file.length)) as text,
            closing(_read_compacted(reader, file)) as other,
        ):
            folded = fold_window(text, file.accounts, formats, compacted=other)
    except OnceoverError as error:
        return WindowOutcome(error=str(error)), None
    if isinstance(folded, FoldedWindow):
        return WindowOutcome(folded.summary), folded.rows
    return WindowOutcome(shuffled=folded), None


def _read_compacted(reader: LineReader, file: WindowFile) -> Generator[Piece, None, None]:
    if file.compacted is not None:
        yield from reader.read_lines(file.compacted.path, file.compacted.length)


def _add_window(rows: pa.Table, window_ms: int, schema: pa.Schema) -> pa.Table:
    window = pa.array(np.full(len(rows), window_ms, np.int64))
    return pa.table([window, pa.nulls(len(rows), pa.binary()), *rows.columns], schema=schema)
