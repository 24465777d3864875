"""Windows whose records count by their VALUE, read, evaluated and folded in one task each.

files -> a row for each line, with its record, unit by unit -> the SQL of the contract of its ID -> folded unit by unit
-> rows as `fold_files` gives them, or the lines that count
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.errors import OnceoverError, TerminalError
from onceover.lines import disjoint_units
from onceover.lines.accounts import Accounts
from onceover.lines.folded_window import FoldedUnit
from onceover.lines.judge import NO_WINDOW
from onceover.lines.line_rows import EVALUATED, SCHEMA, VALUE_FIELDS, fold_rows, make_rows
from onceover.model.contract import Contracts
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.fold_tasks import LINE, group_units, list_lines, make_batches, make_schema, run_tasks
from onceover.spark.interpret import interpret
from onceover.spark.line_columns import LineColumns
from onceover.spark.window_reading import LineReader, WindowFile, read_units

_ERROR: Final = "error"
_ROWS: Final = pa.schema([("window_ms", pa.int64()), (_ERROR, pa.string()), *SCHEMA])


@dataclass(frozen=True, slots=True)
class ValueTasks:
    """Folds windows of one pipeline by the VALUE of all records, from their files in the raw store at that address;
    `schemas` are as `interpret` takes them."""

    spark: SparkSession
    address: str
    contracts: Contracts
    columns: LineColumns
    schemas: SchemaFiles | None

    def fold(self, files: Sequence[WindowFile]) -> DataFrame:
        """Return what `fold_files` does."""
        rows = self._evaluate(files, whole=False).drop("line")
        planned = self.spark.sparkContext.broadcast(
            ({file.window_ms: file.accounts for file in files}, self.columns.formats.schema, self.columns.grouping)
        )

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            accounts, typed, grouping = planned.value
            windows = (
                group_units(window_ms, (_type(unit, typed) for unit in folded), grouping)
                for window_ms, folded in _fold(batches, accounts)
            )
            yield from make_batches(windows, grouping)

        return rows.mapInArrow(run, make_schema(self.columns))

    def select_lines(self, files: Sequence[WindowFile]) -> DataFrame:
        """Return what the function `select_lines` does."""
        rows = self._evaluate(files, whole=True).drop(*self.columns.types.names)
        planned = self.spark.sparkContext.broadcast({file.window_ms: file.accounts for file in files})

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for window_ms, folded in _fold(batches, planned.value):
                for unit in folded:
                    yield from list_lines(unit, window_ms)

        return rows.mapInArrow(run, LINE)

    def _evaluate(self, files: Sequence[WindowFile], *, whole: bool) -> DataFrame:
        """Return window_ms, _ERROR, what `make_rows` gives but for the records, EVALUATED and the columns that VALUE
        gives, in order."""
        run = partial(_read_rows, unit_bytes=disjoint_units.UNIT_BYTES, whole=whole)
        rows = run_tasks(self.spark, self.address, files, run, from_arrow_schema(_ROWS))
        rows = rows.select(
            "*",
            F.lit(None).cast("bigint").alias(EVALUATED),
            *(F.lit(None).cast(field.dataType).alias(field.name) for field in self.columns.types),
        )
        for version in _list_versions(files, len(self.contracts.versions)):
            rows = _evaluate_version(rows, self.contracts, version, self.columns.types.names, self.schemas)
        return rows.drop("place", "kafka_partition", *VALUE_FIELDS)


def _evaluate_version(
    rows: DataFrame, contracts: Contracts, version: int, names: Sequence[str], schemas: SchemaFiles | None
) -> DataFrame:
    """Set EVALUATED and the columns to what VALUE gives, of records of that version."""
    is_own = F.col("of_place") % len(contracts.versions) == version - 1
    kept = [name for name in rows.columns if name not in (EVALUATED, *names)]
    inputs = [
        F.when(F.col("place") % len(contracts.versions) == version - 1, F.col(name)).alias(name)
        for name in VALUE_FIELDS
    ]
    given = rows.select(
        *(F.col(name).alias(f"of_{name}") for name in rows.columns), "kafka_partition", "offset", *inputs
    )
    found = given.transform(interpret(contracts.versions[version - 1], schemas=schemas))
    missing = set(names) - set(found.columns)
    return found.select(
        *(F.col(f"of_{name}").alias(name) for name in kept),
        F.when(is_own, F.coalesce("event_ms", F.lit(NO_WINDOW))).otherwise(F.col(f"of_{EVALUATED}")).alias(EVALUATED),
        *(F.when(is_own, F.lit(None) if name in missing else F.col(name)).otherwise(F.col(f"of_{name}")).alias(name)
          for name in names),
    )  # fmt: skip


def _list_versions(files: Sequence[WindowFile], count: int) -> list[int]:
    """Return the contract versions that IDs of these windows have."""
    places = {place for file in files for place in np.unique(file.accounts.contract.number).tolist()}
    return sorted({place % count + 1 for place in places} | {count})


def _read_rows(
    reader: LineReader, files: Sequence[WindowFile], unit_bytes: int, *, whole: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these windows, of one that cannot be read the last one with the error."""
    for file in files:
        try:
            for piece in read_units(reader, file, unit_bytes):
                yield from _add_window(make_rows(piece, file.accounts, whole=whole), file.window_ms)
        except OnceoverError as error:
            yield from pa.Table.from_pylist([{"window_ms": file.window_ms, _ERROR: str(error)}], _ROWS).to_batches()


def _add_window(rows: pa.Table, window_ms: int) -> list[pa.RecordBatch]:
    window, error = pa.array(np.full(len(rows), window_ms, np.int64)), pa.nulls(len(rows), pa.string())
    batches: list[pa.RecordBatch] = pa.table([window, error, *rows.columns], schema=_ROWS).combine_chunks().to_batches()
    return batches


def _fold(
    batches: Iterable[pa.RecordBatch], accounts: Mapping[int, Accounts]
) -> Iterator[tuple[int, Iterator[FoldedUnit]]]:
    """Yield each window, and its units as they are read. Those of one that could not be read end in a TerminalError."""
    for window_ms, pieces in groupby(_cut(batches), lambda piece: piece[0][0]):
        yield window_ms, _fold_units(pieces, accounts[window_ms])


def _fold_units(
    pieces: Iterable[tuple[tuple[int, int | None], pa.RecordBatch]], accounts: Accounts
) -> Iterator[FoldedUnit]:
    for (_, number), of_unit in groupby(pieces, itemgetter(0)):
        rows = pa.Table.from_batches([piece for _, piece in of_unit])
        if number is None:
            raise TerminalError(rows.column(_ERROR)[0].as_py())
        yield fold_rows(rows, accounts)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[int, int | None], pa.RecordBatch]]:
    """Yield the rows in order, cut where a window or a unit ends, with both; no unit has an error."""
    for batch in batches:
        window, unit = batch.column("window_ms").to_numpy(), batch.column("unit").fill_null(-1).to_numpy()
        cuts = np.flatnonzero((np.diff(window) != 0) | (np.diff(unit) != 0)) + 1
        for start, end in pairwise([0, *cuts.tolist(), batch.num_rows]):
            if start < end:
                number = int(unit[start])
                yield (int(window[start]), number if number >= 0 else None), batch.slice(start, end - start)


def _type(unit: FoldedUnit, typed: pa.Schema) -> FoldedUnit:
    return FoldedUnit(unit.summary, unit.rows.select(typed.names).cast(typed))
