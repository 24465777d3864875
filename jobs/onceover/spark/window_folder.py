"""Windows folded in the way that each needs: by the columns in its lines, or by VALUE."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.lines.accounts import MAX_RUNS
from onceover.lines.disjoint_units import count_units
from onceover.lines.summary import WindowSummary
from onceover.model.contract import Contracts
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.fold_tasks import SUMMARY, fold_files, read_outcomes, select_lines
from onceover.spark.line_columns import LineColumns
from onceover.spark.value_tasks import ValueTasks
from onceover.spark.window_reading import WindowFile


@dataclass(slots=True)
class FoldedFiles:
    """The summaries of windows, by their start in ms, and why others have none; those `by_value` were given by VALUE
    alone. `kept` are the rows of windows with a summary; `replaced` ones hold memory too."""

    summaries: dict[int, WindowSummary] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    by_value: frozenset[int] = frozenset()
    kept: list[DataFrame] = field(default_factory=list)
    replaced: list[DataFrame] = field(default_factory=list)

    def select_rows(self) -> DataFrame:
        """Return window_ms, keys and measures of all windows that have a summary."""
        selected = [rows.where(F.col(SUMMARY).isNull()).drop(SUMMARY) for rows in self.kept]
        return reduce(DataFrame.unionByName, selected)

    def replace(self, other: FoldedFiles) -> None:
        """Take the summaries, failures and kept rows of these windows in the place of this one's."""
        windows = other.summaries.keys() | other.failures.keys()
        self.replaced += self.kept
        self.kept = [rows.where(~F.col("window_ms").isin(*windows)) for rows in self.kept] + other.kept
        self.summaries = {start: each for start, each in (self.summaries | other.summaries).items()
                          if start not in other.failures}  # fmt: skip
        self.failures |= other.failures
        self.by_value = self.by_value - windows | other.by_value

    def close(self) -> None:
        for rows in (*self.kept, *self.replaced):
            with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
                rows.unpersist()
        self.kept.clear()
        self.replaced.clear()


class WindowFolder:
    """Folds windows of one pipeline from their files in the raw store at that address."""

    def __init__(
        self, spark: SparkSession, address: str, contracts: Contracts, schemas: SchemaFiles | None = None
    ) -> None:
        self._spark, self._address, self._columns = spark, address, LineColumns.of(spark, contracts)
        self._by_value = ValueTasks(spark, address, contracts, self._columns, schemas)

    def fold(self, files: Sequence[WindowFile]) -> FoldedFiles:
        """Fold these windows, and keep their aggregated rows. One with a record that counts by its VALUE is read
        again, and all of its records count by theirs."""
        folded, files = FoldedFiles(), _share_runs(files)
        if by_columns := [file for file in files if not file.by_value]:
            rows = fold_files(self._spark, self._address, by_columns, self._columns)
            self._collect(folded, rows)
        done = folded.summaries.keys() | folded.failures.keys()
        if left := [file for file in files if file.window_ms not in done]:
            folded.by_value = frozenset(file.window_ms for file in left)
            rows = self._by_value.fold(left)
            self._collect(folded, rows)
        for file in files:
            if file.window_ms not in folded.summaries:
                folded.failures.setdefault(file.window_ms, f"{file.path} could not be folded; report this")
        return folded

    def select_lines(self, files: Sequence[WindowFile], by_value: Collection[int]) -> DataFrame:
        """Return what the function `select_lines` does; `by_value` are those of `fold`."""
        plain = [file for file in files if file.window_ms not in by_value]
        of_value = [file for file in files if file.window_ms in by_value]
        selected = select_lines(self._spark, self._address, plain, self._columns)
        if not of_value:
            return selected
        return selected.unionByName(self._by_value.select_lines(of_value))

    def _collect(self, folded: FoldedFiles, rows: DataFrame) -> None:
        """Keep the rows, and add the outcomes of windows: a summary, a failure, or neither for one that needs VALUE."""
        rows = self._columns.name(rows, [SUMMARY]).persist(StorageLevel.MEMORY_AND_DISK)
        folded.kept.append(rows)
        for row in rows.where(F.col(SUMMARY).isNotNull()).select(SUMMARY).collect():  # a few for each task
            for window_ms, outcome in read_outcomes(row[SUMMARY]).items():
                if isinstance(outcome, WindowSummary):
                    folded.summaries[window_ms] = outcome
                elif outcome is not None:
                    folded.failures[window_ms] = outcome


def _share_runs(files: Sequence[WindowFile]) -> list[WindowFile]:
    """Return the files with accounts under which their summaries have MAX_RUNS together, or a thousand each."""
    share = max(MAX_RUNS // max(sum(count_units(file.weight) for file in files), 1), 1000)
    return [replace(file, accounts=replace(file.accounts, max_runs=share)) for file in files]
