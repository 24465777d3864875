"""Window files read in splits: a row for each line, with the part of its window that folds it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.errors import OnceoverError
from onceover.lines.line_rows import SCHEMA, make_rows
from onceover.lines.read import read
from onceover.lines.typed_lines import ColumnFormats, hold_typed
from onceover.raw.frozen_file import FrozenFiles
from onceover.spark.file_splits import FileSplit, cut_file
from onceover.spark.fold_tasks import WindowFile

PART_BYTES: Final = 16 * 1024 * 1024  # a worker holds a part's rows, a copy in the order of IDs, and their fold
ERROR: Final = "error"


@dataclass(frozen=True, slots=True)
class _WindowSplit:
    """A split of a window's text, or of its compacted file, whose lines are folded in so many parts."""

    file: WindowFile
    split: FileSplit
    parts: int
    compacted: bool


def read_splits(
    spark: SparkSession,
    address: str,
    files: Sequence[WindowFile],
    formats: ColumnFormats,
    every: Collection[int],
    *,
    whole: bool,
) -> DataFrame:
    """Return window_ms, ERROR and what `make_rows` gives of all lines; VALUE is evaluated of all those of the windows
    `every`, by their start in ms. A split that cannot be read gives a row with its error; with `whole` it fails the
    action."""
    splits = [split for file in files for split in _cut(file)]
    arrow = pa.schema([("window_ms", pa.int64()), (ERROR, pa.string()), *SCHEMA, *formats.schema])
    planned = spark.sparkContext.broadcast((splits, formats, frozenset(every), arrow))

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        all_splits, of_columns, of_all, schema = planned.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                planned_split = all_splits[number]
                file, split, parts = planned_split.file, planned_split.split, planned_split.parts
                try:
                    reading = FrozenFiles(address).read_split(split.path, split.start, split.end, split.length)
                    for position, text in reading:
                        lines = read(text)
                        typed = hold_typed(lines, position, of_columns, compacted=planned_split.compacted)
                        is_every = file.window_ms in of_all
                        rows = make_rows(lines, typed, file.accounts, parts, every=is_every, whole=whole)
                        yield from _add_window(rows, file.window_ms, schema).to_batches()
                except OnceoverError as error:
                    if whole:
                        raise
                    row = {"window_ms": file.window_ms, ERROR: str(error), "part": 0}
                    yield from pa.Table.from_pylist([row], schema).to_batches()

    return spark.range(0, len(splits), 1, max(len(splits), 1)).mapInArrow(run, from_arrow_schema(arrow))


def count_parts(file: WindowFile) -> int:
    """Return in how many parts a window's lines are folded, if not by one task."""
    return max(-(-file.weight // PART_BYTES), 1)


def _cut(file: WindowFile) -> Iterator[_WindowSplit]:
    parts = count_parts(file)
    for split in cut_file(file.path, file.length):
        yield _WindowSplit(file, split, parts, compacted=False)
    if file.compacted:
        for split in cut_file(file.compacted.path, file.compacted.length):
            yield _WindowSplit(file, split, parts, compacted=True)


def _add_window(rows: pa.Table, window_ms: int, schema: pa.Schema) -> pa.Table:
    count = len(rows)
    window, error = pa.array(np.full(count, window_ms, np.int64)), pa.nulls(count, pa.string())
    return pa.table([window, error, *rows.columns], schema=schema).combine_chunks()
