"""Windows that one task cannot fold alone: read in splits, evaluated where VALUE decides, shuffled by ID.

splits of files -> a row for each line, with its record where VALUE decides -> the contract's SQL over those records
-> one shuffle by window and part, of all but the records -> each part folded -> rows as `fold_files` gives them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from onceover.errors import OnceoverError
from onceover.lines import records
from onceover.lines.accounts import Accounts
from onceover.lines.chunks import Piece
from onceover.lines.folded_window import FoldedWindow
from onceover.lines.judge import NO_WINDOW
from onceover.lines.line_rows import EVALUATED, SCHEMA, fold_rows, make_rows
from onceover.lines.read import read
from onceover.lines.typed_lines import ColumnFormats, hold_typed
from onceover.model.contract import Contracts
from onceover.raw.frozen_file import FrozenFiles
from onceover.raw.parquet_lines import read_stored
from onceover.spark.fold_tasks import SUMMARY, WindowFile, WindowOutcome, make_outcome
from onceover.spark.interpret import interpret
from onceover.spark.line_columns import LineColumns

SPLIT_BYTES: Final = 64 * 1024 * 1024
PARQUET_BYTES: Final = 16 * 1024 * 1024  # as large as a row group that compaction writes
_NOT_SHUFFLED = ("place", *records.SCHEMA.names)
_ERROR = "error"


@dataclass(frozen=True, slots=True)
class _Split:
    """Bytes of the text, or of the Parquet, of the window of that number, whose lines are folded in so many parts."""

    number: int
    start: int
    end: int
    parts: int
    compacted: bool


def shuffle_files(
    spark: SparkSession,
    address: str,
    files: Sequence[WindowFile],
    columns: LineColumns,
    contracts: Contracts,
    *,
    every: bool,
    with_records: bool = False,
) -> DataFrame:
    """Return rows as `fold_files` does, but an outcome for each part of a window, and groups of its records: summaries
    and groups of parts add up. A window of which one part has none may have rows of the others. With `every`, VALUE
    gives the columns of all records. `with_records` returns records in place of groups, as `select_records` needs them.
    Lazy, and each action reads HDFS again."""
    splits = [split for number, file in enumerate(files) for split in _cut(number, file)]
    versions = _list_versions(files, len(contracts.versions))
    rows = _read_splits(spark, address, files, splits, columns.formats, every=every, whole=with_records)
    evaluated = rows.transform(_evaluate(contracts, versions, columns.types.names))
    if not with_records:
        evaluated = evaluated.drop(*_NOT_SHUFFLED)
    fold, schema = _make_folder(spark, files, columns, with_records=with_records)
    return evaluated.groupBy("window_ms", "part").applyInArrow(fold, schema)


def _cut(number: int, file: WindowFile) -> Iterator[_Split]:
    parts = max(-(-file.weight // SPLIT_BYTES), 1)
    for start in range(0, file.length, SPLIT_BYTES):
        yield _Split(number, start, min(start + SPLIT_BYTES, file.length), parts, compacted=False)
    stored = file.parquet.length if file.parquet else 0
    for start in range(0, stored, PARQUET_BYTES):
        yield _Split(number, start, min(start + PARQUET_BYTES, stored), parts, compacted=True)


def _read_split(files: FrozenFiles, file: WindowFile, split: _Split) -> Iterator[Piece]:
    if split.compacted and file.parquet:
        return read_stored(files, file.parquet.path, file.parquet.length, split.start, split.end)
    return files.read_split(file.path, split.start, split.end, file.length)


def _list_versions(files: Sequence[WindowFile], count: int) -> list[int]:
    """Return the contract versions that IDs of these windows have."""
    places = {place for file in files for place in np.unique(file.accounts.contract.number).tolist()}
    return sorted({place % count + 1 for place in places} | {count})


def _read_splits(
    spark: SparkSession,
    address: str,
    files: Sequence[WindowFile],
    splits: Sequence[_Split],
    formats: ColumnFormats,
    *,
    every: bool,
    whole: bool,
) -> DataFrame:
    """Return the rows of all splits; of one that cannot be read, its error is the contract of a row without a part."""
    arrow = pa.schema([("window_ms", pa.int64()), (_ERROR, pa.string()), *SCHEMA, *formats.schema])
    planned = spark.sparkContext.broadcast((list(files), list(splits), formats, arrow))

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        all_files, all_splits, of_columns, schema = planned.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                split = all_splits[number]
                file = all_files[split.number]
                try:
                    for position, text in _read_split(FrozenFiles(address), file, split):
                        lines = read(text)
                        typed = hold_typed(lines, position, of_columns, compacted=split.compacted)
                        rows = make_rows(lines, typed, file.accounts, split.parts, every=every, whole=whole)
                        yield from _add_window(rows, file.window_ms, schema).to_batches()
                except OnceoverError as error:
                    row = {"window_ms": file.window_ms, _ERROR: str(error), "part": 0}
                    yield from pa.Table.from_pylist([row], schema).to_batches()

    schema = StructType([StructField(field.name, from_arrow_type(field.type)) for field in arrow])
    return spark.range(0, len(splits), 1, max(len(splits), 1)).mapInArrow(run, schema)


def _add_window(rows: pa.Table, window_ms: int, schema: pa.Schema) -> pa.Table:
    count = len(rows)
    window, error = pa.array(np.full(count, window_ms, np.int64)), pa.nulls(count, pa.string())
    return pa.table([window, error, *rows.columns], schema=schema).combine_chunks()


def _evaluate(contracts: Contracts, versions: Sequence[int], names: Sequence[str]) -> Callable[[DataFrame], DataFrame]:
    """Add EVALUATED, null where VALUE was not asked, and replace the columns by what VALUE gives where it was."""
    count = len(contracts.versions)

    def add(rows: DataFrame) -> DataFrame:
        found = rows.withColumn(EVALUATED, F.lit(None).cast("bigint"))
        for version in versions:
            found = _evaluate_version(found, contracts, version, count, names)
        return found

    return add


def _evaluate_version(
    rows: DataFrame, contracts: Contracts, version: int, count: int, names: Sequence[str]
) -> DataFrame:
    is_own = F.col("of_place") % count == version - 1
    kept = [name for name in rows.columns if name not in (EVALUATED, *names)]
    inputs = [F.when(F.col("place") % count == version - 1, F.col(name)).alias(name)
              for name in ("kafka_timestamp", "key", "value")]  # fmt: skip
    given = rows.select(*(F.col(name).alias(f"of_{name}") for name in rows.columns), *inputs)
    found = given.transform(interpret(contracts.versions[version - 1]))
    missing = set(names) - set(found.columns)
    return found.select(
        *(F.col(f"of_{name}").alias(name) for name in kept),
        F.when(is_own, F.coalesce("event_ms", F.lit(NO_WINDOW))).otherwise(F.col(f"of_{EVALUATED}")).alias(EVALUATED),
        *(F.when(is_own, F.lit(None) if name in missing else F.col(name)).otherwise(F.col(f"of_{name}")).alias(name)
          for name in names),
    )  # fmt: skip


def _make_folder(
    spark: SparkSession, files: Sequence[WindowFile], columns: LineColumns, *, with_records: bool
) -> tuple[Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table], StructType]:
    accounts: Mapping[int, Accounts] = {file.window_ms: file.accounts for file in files}
    carried = ["source", "offset", "line_ms", *records.SCHEMA.names]
    of_lines = {field.name: from_arrow_type(field.type) for field in SCHEMA}
    schema = StructType([
        StructField("window_ms", LongType()), StructField(SUMMARY, BinaryType()),
        *([StructField(name, of_lines[name]) for name in carried] if with_records else columns.grouped),
    ])  # fmt: skip
    planned = spark.sparkContext.broadcast(accounts)
    grouping, typed = columns.grouping, columns.formats.schema

    def select(rows: pa.Table) -> pa.Table:
        return rows.select(carried) if with_records else grouping.group(rows.select(typed.names).cast(typed))

    def fold(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        window_ms, part = (each.as_py() for each in key)
        errors = rows.column(_ERROR).drop_null()
        folded = None if len(errors) else fold_rows(rows, planned.value[window_ms])
        selected = select(rows.slice(0, 0))
        if isinstance(folded, FoldedWindow):
            outcome, selected = WindowOutcome(folded.summary, part=part), select(folded.rows)
        elif folded is None:
            outcome = WindowOutcome(error=errors[0].as_py(), part=part)
        else:
            outcome = WindowOutcome(shuffled=folded, part=part)
        count = len(selected)
        window = pa.array(np.full(count + 1, window_ms, np.int64))
        summary = pa.array([*([None] * count), make_outcome(outcome)], pa.binary())
        padded = [pa.chunked_array([*column.chunks, pa.nulls(1, column.type)]) for column in selected.columns]
        return pa.table([window, summary, *padded], names=["window_ms", SUMMARY, *selected.column_names])

    return fold, schema
