"""Windows that one task cannot fold alone: read in splits, evaluated where VALUE decides, shuffled by ID.

splits of files -> a row for each line, with its record where VALUE decides -> the contract's SQL over those records
-> one shuffle by window and part, of all but the records -> each part folded -> rows as `fold_files` gives them, or the
lines that count
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from onceover.errors import TerminalError
from onceover.lines.accounts import Accounts
from onceover.lines.folded_window import FoldedWindow
from onceover.lines.judge import NO_WINDOW
from onceover.lines.line_rows import EVALUATED, VALUE_FIELDS, fold_rows
from onceover.model.contract import Contracts
from onceover.model.window import format_moment, from_ms
from onceover.spark.fold_tasks import SUMMARY, WindowFile, WindowOutcome, make_outcome
from onceover.spark.interpret import interpret
from onceover.spark.line_columns import LineColumns
from onceover.spark.line_splits import ERROR, read_splits

LINE: Final = "window_ms bigint, source bigint, offset bigint, line binary"
_OF_VALUE: Final = ("place", *VALUE_FIELDS)
_Fold = Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]


class LineShuffle:
    """Shuffles the lines of one pipeline's windows, whose files are in the raw store at that address. What it returns
    is lazy, and each action reads raw again. `every` are windows, by their start in ms, of which VALUE gives the
    columns of all records."""

    def __init__(self, spark: SparkSession, address: str, contracts: Contracts, columns: LineColumns) -> None:
        self._spark, self._address, self._contracts, self._columns = spark, address, contracts, columns

    def fold(self, files: Sequence[WindowFile], every: Collection[int]) -> DataFrame:
        """Return rows as `fold_files` does, but an outcome for each part of a window, and groups of its records:
        summaries and groups of parts add up. A window of which one part has none may have rows of the others."""
        rows = self._read(files, every, whole=False).drop("line", *_OF_VALUE)
        folder = _make_folder(self._broadcast(files), self._columns)
        schema = [StructField("window_ms", LongType()), StructField(SUMMARY, BinaryType()), *self._columns.grouped]
        return rows.groupBy("window_ms", "part").applyInArrow(folder, StructType(schema))

    def select_lines(self, files: Sequence[WindowFile], every: Collection[int]) -> DataFrame:
        """Return a line of each record that counts, without its newline, in the columns of LINE; IDs sort by source and
        offset. An action fails for a file that cannot be read, and for a window to which `fold` gives no summary."""
        rows = self._read(files, every, whole=True).drop(*_OF_VALUE, *self._columns.types.names)
        return rows.groupBy("window_ms", "part").applyInArrow(_make_selector(self._broadcast(files)), LINE)

    def _read(self, files: Sequence[WindowFile], every: Collection[int], *, whole: bool) -> DataFrame:
        rows = read_splits(self._spark, self._address, files, self._columns.formats, every, whole=whole)
        count, rows = len(self._contracts.versions), rows.withColumn(EVALUATED, F.lit(None).cast("bigint"))
        for version in _list_versions(files, count):
            rows = _evaluate_version(rows, self._contracts, version, count, self._columns.types.names)
        return rows

    def _broadcast(self, files: Sequence[WindowFile]) -> Broadcast[dict[int, Accounts]]:
        return self._spark.sparkContext.broadcast({file.window_ms: file.accounts for file in files})


def _list_versions(files: Sequence[WindowFile], count: int) -> list[int]:
    """Return the contract versions that IDs of these windows have."""
    places = {place for file in files for place in np.unique(file.accounts.contract.number).tolist()}
    return sorted({place % count + 1 for place in places} | {count})


def _evaluate_version(
    rows: DataFrame, contracts: Contracts, version: int, count: int, names: Sequence[str]
) -> DataFrame:
    """Set EVALUATED, and replace the columns by what VALUE gives, where it is evaluated under that version."""
    is_own = F.col("of_place") % count == version - 1
    kept = [name for name in rows.columns if name not in (EVALUATED, *names)]
    inputs = [F.when(F.col("place") % count == version - 1, F.col(name)).alias(name)
              for name in VALUE_FIELDS]  # fmt: skip
    given = rows.select(*(F.col(name).alias(f"of_{name}") for name in rows.columns), *inputs)
    found = given.transform(interpret(contracts.versions[version - 1]))
    missing = set(names) - set(found.columns)
    return found.select(
        *(F.col(f"of_{name}").alias(name) for name in kept),
        F.when(is_own, F.coalesce("event_ms", F.lit(NO_WINDOW))).otherwise(F.col(f"of_{EVALUATED}")).alias(EVALUATED),
        *(F.when(is_own, F.lit(None) if name in missing else F.col(name)).otherwise(F.col(f"of_{name}")).alias(name)
          for name in names),
    )  # fmt: skip


def _make_folder(accounts: Broadcast[dict[int, Accounts]], columns: LineColumns) -> _Fold:
    grouping, typed = columns.grouping, columns.formats.schema

    def fold(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        window_ms, part = (each.as_py() for each in key)
        errors = rows.column(ERROR).drop_null()
        folded = None if len(errors) else fold_rows(rows, accounts.value[window_ms])
        selected = grouping.schema.empty_table()
        if isinstance(folded, FoldedWindow):
            selected = grouping.group(folded.rows.select(typed.names).cast(typed))
            outcome = WindowOutcome(folded.summary, part=part)
        elif folded is None:
            outcome = WindowOutcome(error=errors[0].as_py(), part=part)
        else:
            outcome = WindowOutcome(shuffled=folded, part=part)
        count = len(selected)
        window = pa.array(np.full(count + 1, window_ms, np.int64))
        summary = pa.array([*([None] * count), make_outcome(outcome)], pa.binary())
        padded = [pa.chunked_array([*column.chunks, pa.nulls(1, column.type)]) for column in selected.columns]
        return pa.table([window, summary, *padded], names=["window_ms", SUMMARY, *selected.column_names])

    return fold


def _make_selector(accounts: Broadcast[dict[int, Accounts]]) -> _Fold:
    def select(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        window_ms = key[0].as_py()
        folded = fold_rows(rows, accounts.value[window_ms])
        if not isinstance(folded, FoldedWindow):
            raise TerminalError(
                f"window {format_moment(from_ms(window_ms))} changed while it was read; run the command again"
            )
        window = pa.array(np.full(len(folded.rows), window_ms, np.int64))
        found = folded.rows.select(["source", "offset", "line"])
        return pa.table([window, *found.columns], ["window_ms", *found.column_names])

    return select
