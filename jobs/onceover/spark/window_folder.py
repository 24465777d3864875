"""Windows folded in the way that each needs: by one task, or in splits and parts, by columns or by VALUE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Final

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.lines.accounts import MOST_RUNS
from onceover.lines.summary import WindowSummary
from onceover.model.contract import Contracts
from onceover.spark.fold_tasks import SUMMARY, WindowFile, WindowOutcome, fold_files, read_outcome
from onceover.spark.line_columns import LineColumns
from onceover.spark.line_splits import count_parts
from onceover.spark.shuffled_lines import LineShuffle

LARGE_BYTES: Final = 512 * 1024 * 1024
"""Of a file that no task begins to fold alone: even with lines of 500 bytes it has too many."""


@dataclass(slots=True)
class FoldedFiles:
    """The summaries of windows, by their start in ms, and why others have none; those `by_value` were given by VALUE
    alone. Rows that are kept are of all ways that were tried: those of a window count where its summary came from."""

    summaries: dict[int, WindowSummary] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    by_value: set[int] = field(default_factory=set)
    kept: list[tuple[DataFrame, list[int]]] = field(default_factory=list)

    def select_rows(self) -> DataFrame | None:
        """Return window_ms, keys and measures of all windows that have a summary; None if no rows are kept."""
        selected = [
            rows.where(F.col(SUMMARY).isNull() & ~F.col("window_ms").isin(others)).drop(SUMMARY)
            for rows, others in self.kept
        ]
        return reduce(DataFrame.unionByName, selected) if selected else None

    def close(self) -> None:
        for rows, _ in self.kept:
            with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
                rows.unpersist()
        self.kept.clear()


class WindowFolder:
    """Folds windows of one pipeline from their files in the raw store at that address."""

    def __init__(self, spark: SparkSession, address: str, contracts: Contracts) -> None:
        self._spark, self._address = spark, address
        self._columns = LineColumns.of(spark, contracts)
        self._shuffle = LineShuffle(spark, address, contracts, self._columns)

    def fold(self, files: Sequence[WindowFile], *, keep: bool) -> FoldedFiles:
        """Fold these windows, and `keep` their aggregated rows. One that needs it is read again, in another way."""
        folded, files = FoldedFiles(), _share_runs(files)
        # No split has an empty file.
        small = [file for file in files if file.weight <= (0 if file.by_value else LARGE_BYTES)]
        if small:
            rows = fold_files(self._spark, self._address, small, self._columns)
            self._collect(folded, self._columns.name(rows, [SUMMARY]), small, keep=keep)
        for by_value in (False, True):
            done = folded.summaries.keys() | folded.failures.keys()
            left = [file for file in files if file.window_ms not in done and (by_value or not file.by_value)]
            if left:
                folded.by_value = {file.window_ms for file in left} if by_value else set()
                rows = self._shuffle.fold(left, folded.by_value)
                self._collect(folded, self._columns.merge(rows, [SUMMARY]), left, keep=keep)
        for file in files:
            if file.window_ms not in folded.summaries:
                folded.failures.setdefault(file.window_ms, f"{file.path} could not be folded; report this")
        return folded

    def select_lines(self, files: Sequence[WindowFile], by_value: Collection[int]) -> DataFrame:
        """Return what `LineShuffle.select_lines` does; `by_value` are those of `fold`."""
        return self._shuffle.select_lines(files, by_value)

    def _collect(self, folded: FoldedFiles, rows: DataFrame, files: Sequence[WindowFile], *, keep: bool) -> None:
        """Add the outcomes of these windows: a summary if all parts have one, a failure if any has failed."""
        if keep:
            rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        parts: dict[int, list[WindowOutcome]] = {}
        for row in rows.where(F.col(SUMMARY).isNotNull()).select("window_ms", SUMMARY).collect():  # one a part
            parts.setdefault(row.window_ms, []).append(read_outcome(row[SUMMARY]))
        summaries, failures = join_parts(parts)
        folded.summaries |= summaries
        folded.failures |= failures
        if keep:
            folded.kept.append((rows, [file.window_ms for file in files if file.window_ms not in summaries]))


def _share_runs(files: Sequence[WindowFile]) -> list[WindowFile]:
    """Return the files with accounts under which their summaries have MOST_RUNS together, or a thousand each."""
    share = max(MOST_RUNS // max(sum(map(count_parts, files)), 1), 1000)
    return [replace(file, accounts=replace(file.accounts, most_runs=share)) for file in files]


def join_parts(parts: Mapping[int, Sequence[WindowOutcome]]) -> tuple[dict[int, WindowSummary], dict[int, str]]:
    """Return the sums of the summaries, and the errors; neither for a window of which a part needs another way."""
    summaries: dict[int, WindowSummary] = {}
    failures: dict[int, str] = {}
    for window_ms, outcomes in parts.items():
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        found = [outcome.summary for outcome in outcomes if outcome.summary is not None]
        if errors:
            failures[window_ms] = errors[0]
        elif len(found) == len(outcomes):
            summaries[window_ms] = reduce(add, found)
    return summaries, failures
