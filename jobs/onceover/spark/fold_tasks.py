"""Window files read and folded by tasks, each of which has several: nothing moves between windows but rows to sum.

task numbers -> each task's files, to their frozen length -> small windows together, a large one unit by unit -> folded
-> a row for each group of a window's records that count, and some rows of outcomes; or the lines that count
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from onceover.errors import OnceoverError, TerminalError
from onceover.lines import disjoint_units
from onceover.lines.accounts import MAX_RUNS
from onceover.lines.folded_window import OF_LINE, FoldedUnit, fold_units
from onceover.lines.grouping import Grouping
from onceover.lines.packing import pack
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats
from onceover.lines.window_batch import FoldedBatch, fold_batch
from onceover.model.window import format_moment, from_ms
from onceover.raw.frozen_file import FrozenFiles
from onceover.spark.line_columns import LineColumns
from onceover.spark.python_worker import freeze_modules
from onceover.spark.window_reading import LineReader, WindowFile, read_batches, read_units

SUMMARY: Final = "__onceover_summary"  # no key or measure has that name
LINE: Final = "window_ms bigint, source bigint, offset bigint, line binary"
_WINDOW: Final = pa.field("window_ms", pa.int64())
_BATCH = 65_536  # rows that go to the JVM together
_BATCH_BYTES = 16 * 1024 * 1024


Outcome = WindowSummary | str | None
"""A window's summary, or why it has none: the error of reading its file, or None if records count by their VALUE."""


GroupedWindows = tuple[dict[int, Outcome], pa.Table]
"""The outcomes of windows, and the groups of those that have a summary: `window_ms` and the grouped columns."""

Run = Callable[[LineReader, Sequence[WindowFile]], Iterator[pa.RecordBatch]]


def fold_files(spark: SparkSession, address: str, files: Sequence[WindowFile], columns: LineColumns) -> DataFrame:
    """Return `window_ms`, SUMMARY, and the grouped columns: a row for each group of a window's records that count,
    whose SUMMARY is null, and a few rows with the outcomes of windows, which `read_outcomes` reads.

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
    tasks = [pickle.dumps([files[place] for place in task], pickle.HIGHEST_PROTOCOL) for task in packed]
    planned = spark.sparkContext.broadcast((tasks, run))  # each worker takes its own tasks apart

    def run_numbers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        tasks, run_files = planned.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run_files(FrozenFiles(address), pickle.loads(tasks[number]))

    return spark.range(0, len(packed), 1, len(packed)).mapInArrow(run_numbers, schema)


def read_outcomes(data: bytes) -> dict[int, Outcome]:
    """Return the outcomes that a task wrote, by the window's start in ms."""
    outcomes: dict[int, Outcome] = pickle.loads(data)
    return outcomes


def run_task(
    reader: LineReader, files: Sequence[WindowFile], formats: ColumnFormats, grouping: Grouping, unit_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these windows. A file that cannot be read fails its window alone."""
    small = [file for file in files if file.weight <= unit_bytes]

    def fold_all() -> Iterator[GroupedWindows]:
        failures: dict[int, str] = {}
        for batch, pieces in read_batches(reader, small, failures):
            yield _group_batch(
                batch, fold_batch(pieces, [file.accounts for file in batch], formats), failures, grouping
            )
        for file in files:
            if file.weight > unit_bytes:
                units = fold_units(read_units(reader, file, unit_bytes), file.accounts, formats)
                yield group_units(file.window_ms, units, grouping)

    yield from make_batches(fold_all(), grouping)


def make_batches(windows: Iterable[GroupedWindows], grouping: Grouping) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `fold_files` for these windows."""
    schema = pa.schema([_WINDOW, (SUMMARY, pa.binary()), *grouping.schema])
    waiting: list[pa.Table] = []
    outcomes: dict[int, Outcome] = {}

    def take() -> list[pa.RecordBatch]:
        summary = {SUMMARY: pickle.dumps(outcomes, pickle.HIGHEST_PROTOCOL)}
        whole = pa.concat_tables([*waiting, pa.Table.from_pylist([summary], schema)])
        return _cut(whole, _BATCH)

    rows = size = 0
    for found, groups in windows:
        outcomes |= found
        waiting.append(groups.add_column(1, SUMMARY, pa.nulls(len(groups), pa.binary())))
        rows += len(found) + len(groups)
        size += groups.nbytes
        if rows >= _BATCH or size >= _BATCH_BYTES:
            yield from take()
            waiting, outcomes, rows, size = [], {}, 0, 0
    if outcomes:
        yield from take()


def group_units(window_ms: int, folded: Iterable[FoldedUnit | None], grouping: Grouping) -> GroupedWindows:
    """Return the outcome and the groups of one window. An error of its units is its outcome."""
    outcome: Outcome = None
    summary, groups = None, grouping.schema.empty_table()
    try:
        for unit in folded:
            if unit is None:
                summary = None
                break
            own = grouping.group(unit.rows)
            if summary is None:
                summary, groups = unit.summary, own
            else:
                summary, groups = summary + unit.summary, grouping.group(pa.concat_tables([groups, own]))
                summary = replace(summary, runs=summary.runs.take(MAX_RUNS))
        outcome = summary
    except OnceoverError as error:
        outcome = str(error)
    groups = groups if isinstance(outcome, WindowSummary) else groups.slice(0, 0)
    return {window_ms: outcome}, groups.add_column(0, _WINDOW, pa.array(np.full(len(groups), window_ms, np.int64)))


def list_lines(folded: FoldedUnit, window_ms: int) -> list[pa.RecordBatch]:
    """Return the lines of a unit that count, in the columns of LINE, in batches of some MiB."""
    window = pa.array(np.full(len(folded.rows), window_ms, np.int64))
    rows = folded.rows.select(OF_LINE).add_column(0, "window_ms", window)
    return _cut(rows, len(rows))


def _cut(rows: pa.Table, most: int) -> list[pa.RecordBatch]:
    """Return batches of at most so many rows, and some MiB."""
    of_size = len(rows) * _BATCH_BYTES // max(rows.nbytes, 1)
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches(max(min(of_size, most), 1))
    return batches


def _group_batch(
    files: Sequence[WindowFile], folded: FoldedBatch, failures: Mapping[int, str], grouping: Grouping
) -> GroupedWindows:
    """Return the outcomes and the groups of a batch's windows; those that failed have no groups."""
    start = np.array([file.window_ms for file in files], np.int64)[folded.window]
    rows = folded.rows.add_column(0, _WINDOW, pa.array(start))
    if failures:
        rows = rows.filter(pa.array(~np.isin(start, list(failures))))
    of_window = Grouping(grouping.functions, pa.schema([_WINDOW, *grouping.schema]))
    outcomes = {file.window_ms: failures.get(file.window_ms, folded.summaries[n]) for n, file in enumerate(files)}
    return outcomes, of_window.group(rows)


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
