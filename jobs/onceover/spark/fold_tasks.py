"""Window files read and folded by tasks, each of which has several: nothing moves between windows but rows to sum.

task numbers -> each task's files, to their frozen length -> lines in units -> folded unit by unit
-> a row for each group of a window's records that count, and one with its summary; or the lines that count
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from onceover.errors import OnceoverError, TerminalError
from onceover.lines import disjoint_units
from onceover.lines.accounts import MAX_RUNS, Accounts
from onceover.lines.chunks import CHUNK
from onceover.lines.disjoint_units import FilePiece, UnitPiece, cut_units
from onceover.lines.folded_window import OF_LINE, FoldedUnit, fold_units
from onceover.lines.grouping import Grouping
from onceover.lines.packing import pack
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats
from onceover.model.window import format_moment, from_ms
from onceover.raw.frozen_file import FrozenFiles, FrozenText
from onceover.spark.line_columns import LineColumns

SUMMARY: Final = "__onceover_summary"  # no key or measure has that name
LINE: Final = "window_ms bigint, source bigint, offset bigint, line binary"
_OWN = [("window_ms", pa.int64()), (SUMMARY, pa.binary())]
_BATCH = 65_536  # rows that go to the JVM together
_BATCH_BYTES = 16 * 1024 * 1024  # of lines
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


Outcome = WindowSummary | str | None
"""A window's summary, or why it has none: the error of reading its file, or None if records count by their VALUE."""


class LineReader(Protocol):
    """Reads a file's lines to its frozen length, as `FrozenFiles` does."""

    def read_lines(self, path: str, length: int, chunk: int) -> Generator[memoryview, None, None]: ...


Run = Callable[[LineReader, Sequence[WindowFile]], Iterator[pa.RecordBatch]]


def fold_files(spark: SparkSession, address: str, files: Sequence[WindowFile], columns: LineColumns) -> DataFrame:
    """Return `window_ms`, SUMMARY, and the grouped columns: a row with an outcome for each window, which
    `read_outcome` reads, and one for each group of its records that count, whose SUMMARY is null.

    Lazy, and each action reads HDFS again.
    """
    run = partial(run_task, formats=columns.formats, grouping=columns.grouping, unit_bytes=disjoint_units.UNIT_BYTES)
    return run_tasks(spark, address, files, run, make_schema(columns))


def select_lines(spark: SparkSession, address: str, files: Sequence[WindowFile], columns: LineColumns) -> DataFrame:
    """Return a line of each record that counts, without its newline, in the columns of LINE; IDs sort by source and
    offset. An action fails for a file that cannot be read, and for a window to which `fold_files` gives no summary."""
    run = partial(_select_lines, formats=columns.formats, unit_bytes=disjoint_units.UNIT_BYTES)
    return run_tasks(spark, address, files, run, LINE)


def make_schema(columns: LineColumns) -> StructType:
    """Return the columns of `fold_files`."""
    return StructType([StructField("window_ms", LongType()), StructField(SUMMARY, BinaryType()), *columns.grouped])


def run_tasks(
    spark: SparkSession, address: str, files: Sequence[WindowFile], run: Run, schema: StructType | str
) -> DataFrame:
    """Return the rows that `run` yields of each task's files. Those of a window are in one partition, in order."""
    packed = pack([file.weight for file in files], spark.sparkContext.defaultParallelism)
    if not packed:
        return spark.createDataFrame([], schema)
    planned = spark.sparkContext.broadcast(([[files[place] for place in task] for task in packed], run))

    def run_numbers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks, run_files = planned.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run_files(FrozenFiles(address), tasks[number])

    return spark.range(0, len(packed), 1, len(packed)).mapInArrow(run_numbers, schema)


def read_outcome(data: bytes) -> Outcome:
    """Return what a task wrote."""
    outcome: Outcome = pickle.loads(data)
    return outcome


def run_task(
    reader: LineReader, files: Sequence[WindowFile], formats: ColumnFormats, grouping: Grouping, unit_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these windows. A file that cannot be read fails its window alone."""
    folded = (
        (file.window_ms, fold_units(read_units(reader, file, unit_bytes), file.accounts, formats)) for file in files
    )
    yield from make_batches(folded, grouping)


def make_batches(
    windows: Iterable[tuple[int, Iterable[FoldedUnit | None]]], grouping: Grouping
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `fold_files` for these windows, each with its folded units. An error of a window's units fails
    it alone."""
    schema = pa.schema([*_OWN, *grouping.schema])
    waiting: list[pa.Table] = []
    for window_ms, folded in windows:
        outcome, groups = _join_units(folded, grouping)
        window, none = pa.array(np.full(len(groups), window_ms, np.int64)), pa.nulls(len(groups), pa.binary())
        waiting.append(pa.table([window, none, *groups.columns], schema=schema))
        summary = pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
        waiting.append(pa.Table.from_pylist([{"window_ms": window_ms, SUMMARY: summary}], schema))
        if sum(map(len, waiting)) >= _BATCH:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches(_BATCH)
            waiting = []
    if waiting:
        yield from pa.concat_tables(waiting).combine_chunks().to_batches(_BATCH)


def read_units(reader: LineReader, file: WindowFile, unit_bytes: int) -> Iterator[UnitPiece]:
    """Yield the window's lines, of its text and its compacted file, as `cut_units` does."""

    chunk = min(CHUNK, unit_bytes)

    # No thread reads ahead: it would wait for Python's lock, and the connection's buffer fills meanwhile, too.
    def read_pieces() -> Iterator[FilePiece]:
        with closing(reader.read_lines(file.path, file.length, chunk)) as text:
            yield from ((False, piece) for piece in text)
        if file.compacted is not None:
            with closing(reader.read_lines(file.compacted.path, file.compacted.length, chunk)) as other:
                yield from ((True, piece) for piece in other)

    yield from cut_units(read_pieces, file.weight, unit_bytes)


def list_lines(folded: FoldedUnit, window_ms: int) -> list[pa.RecordBatch]:
    """Return the lines of a unit that count, in the columns of LINE, in batches of some MiB."""
    window = pa.array(np.full(len(folded.rows), window_ms, np.int64))
    rows = folded.rows.select(OF_LINE).add_column(0, "window_ms", window).combine_chunks()
    batches: list[pa.RecordBatch] = rows.to_batches(max(len(rows) * _BATCH_BYTES // max(rows.nbytes, 1), 1))
    return batches


def _join_units(folded: Iterable[FoldedUnit | None], grouping: Grouping) -> tuple[Outcome, pa.Table]:
    """Return the outcome of a window, and its groups if it has a summary."""
    none = grouping.schema.empty_table()
    summary, groups = None, none
    try:
        for unit in folded:
            if unit is None:
                return None, none
            own = grouping.group(unit.rows)
            if summary is None:
                summary, groups = unit.summary, own
            else:
                summary, groups = summary + unit.summary, grouping.group(pa.concat_tables([groups, own]))
                summary = replace(summary, runs=summary.runs.take(MAX_RUNS))
    except OnceoverError as error:
        return str(error), none
    return summary, groups


def _select_lines(
    reader: LineReader, files: Sequence[WindowFile], formats: ColumnFormats, unit_bytes: int
) -> Iterator[pa.RecordBatch]:
    for file in files:
        for folded in fold_units(read_units(reader, file, unit_bytes), file.accounts, formats, whole=True):
            if folded is None:
                raise TerminalError(
                    f"window {format_moment(from_ms(file.window_ms))} changed while it was read; run the command again"
                )
            yield from list_lines(folded, file.window_ms)
