"""Windows rebuilt from raw format 2: each folded by the task that reads it, the driver asks and puts together.

Answers what `Rebuild` answers. What one window does not show, an ID in two of them, the driver finds: among `shared`
IDs, which two landed batches read, and among the unlanded ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.lines.summary import WindowSummary
from onceover.model.claim import ClaimedWindow
from onceover.model.contract import Contracts
from onceover.model.offsets import OffsetRange, coalesce
from onceover.model.own_offsets import OwnOffsets
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.unlanded import Unlanded
from onceover.model.window import format_moment, from_ms, to_ms
from onceover.repair.shared_ids import add_shared_conflicts
from onceover.repair.unlanded_runs import drop_repeated, find_repeated, sort_runs
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts
from onceover.spark.aggregate import aggregate
from onceover.spark.fold_tasks import SUMMARY, WindowFile, WindowOutcome, fold_files, read_outcome
from onceover.spark.line_columns import LineColumns

MOST_RUNS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FrozenText:
    """A window's text on HDFS: its path, and the length at which it was frozen."""

    path: str
    length: int


class FoldedRebuild:
    """The rebuild of some windows, each from its text in `files`; one without text has no lines.

    `collect` runs the query, and what it read of a window that fails is in `failures` alone. `aggregate` has the rows
    of the other windows. `accounted` and `shared` are as in `Accounts`.
    """

    def __init__(
        self,
        spark: SparkSession,
        address: str,
        contracts: Contracts,
        claimed: Sequence[ClaimedWindow],
        accounted: Sequence[OffsetRange],
        files: Mapping[datetime, FrozenText],
        shared: Sequence[OffsetRange] = (),
    ) -> None:
        self._spark, self._address, self._contracts = spark, address, contracts
        self._claimed, self._files = {claim.window_start: claim for claim in claimed}, files
        self._group = GroupAccounts.of(contracts, accounted, shared)
        self._columns = LineColumns.of(spark, contracts)
        self._accounts = {start: WindowAccounts.of(claim, self._group) for start, claim in self._claimed.items()}
        self._aggregated: DataFrame | None = None
        self._summaries: dict[datetime, WindowSummary] = {}
        self.failures: dict[datetime, str] = {}

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window that could be read, and keep its rows until `close`."""
        self.close()
        of_contract = aggregate(self._contracts.newest, [SUMMARY])
        self._aggregated = self._fold(self._accounts).transform(of_contract).persist(StorageLevel.MEMORY_AND_DISK)
        self._summaries, self.failures = _split_outcomes(_collect_outcomes(self._aggregated))
        rebuilt = {
            start: self._accounts[start].rebuild(summary, self._length(start))
            for start, summary in self._summaries.items()
        }
        return add_shared_conflicts(rebuilt, {start: each.shared for start, each in self._summaries.items()})

    def collect_unlanded(
        self, held: Sequence[OffsetRange], own: OwnOffsets | None
    ) -> tuple[dict[datetime, Unlanded], bool]:
        """Return the windows with intact lines that no landing accounts for, and whether these are all; Kafka's log
        holds the offsets `held`, and the pipeline's lines have its `own`. Reads these windows again."""
        group = self._group.ask_log(held, own)
        unlanded = [start for start, summary in self._summaries.items() if summary.unlanded]
        summaries = self._fold_again(unlanded, group)
        if repeated := find_repeated(summaries):
            summaries |= self._fold_again(unlanded, self._group.ask_log(coalesce((*held, *repeated)), own))
        is_whole = sum(len(summary.runs) for summary in summaries.values()) <= MOST_RUNS
        found = {start: drop_repeated(sort_runs(summary), repeated) for start, summary in summaries.items()}
        if not is_whole:
            found = {start: replace(each, pending=(), beyond=()) for start, each in found.items() if each.orphans}
        return found, is_whole

    def collect_beside(self, offsets: Sequence[OffsetRange]) -> dict[datetime, Unlanded]:
        """Return by window, as orphans, the lines with these accounted IDs, whichever landing's range holds them. Reads
        all windows again."""
        if not offsets:
            return {}
        summaries = self._fold_again(self._summaries, self._group.search(offsets), offsets)
        if repeated := find_repeated(summaries):
            summaries = self._fold_again(self._summaries, self._group.search(offsets, repeated), offsets)
        found = {start: drop_repeated(sort_runs(summary), repeated) for start, summary in summaries.items()}
        return {start: replace(each, foreign=0) for start, each in found.items() if each.orphans or each.conflicts}

    def add_contested_ids(self, rebuilt: Mapping[datetime, RebuiltWindow]) -> dict[datetime, RebuiltWindow]:
        """Return the windows as they are: a summary has all contested IDs, also those that no landing accounts for."""
        return dict(rebuilt)

    def aggregate(self) -> DataFrame | None:
        """Return window_ms, keys and measures of the records that count, over all windows; None before `collect`."""
        if self._aggregated is None:
            return None
        return self._aggregated.where(F.col(SUMMARY).isNull()).drop(SUMMARY)

    def close(self) -> None:
        if self._aggregated is not None:
            with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
                self._aggregated.unpersist()
        self._aggregated = None

    def _length(self, start: datetime) -> int:
        return self._files[start].length if start in self._files else 0

    def _fold(self, accounts: Mapping[datetime, WindowAccounts]) -> DataFrame:
        files = [
            WindowFile(to_ms(start), self._files[start].path if start in self._files else "", self._length(start),
                       each.accounts)
            for start, each in sorted(accounts.items())
        ]  # fmt: skip
        return fold_files(self._spark, self._address, files, self._columns.formats, self._columns.types)

    def _fold_again(
        self, starts: Iterable[datetime], group: GroupAccounts, without: Sequence[OffsetRange] = ()
    ) -> dict[datetime, WindowSummary]:
        """Return the summaries of these windows under other accounts; a window that cannot be read now has failed."""
        accounts = {start: WindowAccounts.of(self._claimed[start], group, without) for start in starts}
        if not accounts:
            return {}
        summaries, failures = _split_outcomes(_collect_outcomes(self._fold(accounts)))
        self.failures |= failures
        return summaries


def _collect_outcomes(rows: DataFrame) -> dict[datetime, WindowOutcome]:
    found = rows.where(F.col(SUMMARY).isNotNull()).select("window_ms", SUMMARY).collect()  # one row a window
    return {from_ms(row.window_ms): read_outcome(row[SUMMARY]) for row in found}


def _split_outcomes(
    outcomes: Mapping[datetime, WindowOutcome],
) -> tuple[dict[datetime, WindowSummary], dict[datetime, str]]:
    summaries: dict[datetime, WindowSummary] = {}
    failures: dict[datetime, str] = {}
    for start, outcome in outcomes.items():
        if outcome.summary is None:
            failures[start] = outcome.error or f"window {format_moment(start)}: {outcome.shuffled}"
        elif outcome.summary.unknown:
            names = ", ".join(name.decode("ascii", "replace") for name in outcome.summary.unknown)
            failures[start] = f"lines have contracts that the ledger does not know: {names}"
        else:
            summaries[start] = outcome.summary
    return summaries, failures
