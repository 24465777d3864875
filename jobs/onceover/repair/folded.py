"""Windows rebuilt from raw: each folded by the task that reads it, and put together by the driver."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from onceover.lines.summary import WindowSummary
from onceover.model.claim import ClaimedWindow
from onceover.model.contract import Contracts
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.window import from_ms, to_ms
from onceover.raw.frozen_file import FrozenText
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts
from onceover.spark.fold_tasks import WindowFile
from onceover.spark.window_folder import FoldedFiles, WindowFolder


class FoldedRebuild:
    """The rebuild of some windows, each from its text in `files` and its file in `compacted`; one without either has no
    lines.

    `collect` runs the query, and what it read of a window that fails is in `failures` alone. `aggregate` has the rows
    of the other windows. `accounted` and `own` are as in `Accounts`.
    """

    def __init__(
        self,
        spark: SparkSession,
        address: str,
        contracts: Contracts,
        claimed: Sequence[ClaimedWindow],
        accounted: Sequence[OffsetRange],
        own: Sequence[OffsetRange],
        files: Mapping[datetime, FrozenText],
        compacted: Mapping[datetime, FrozenText] = MappingProxyType({}),
    ) -> None:
        self._claimed, self._files = {claim.window_start: claim for claim in claimed}, files
        self._compacted = compacted
        self._group = GroupAccounts.of(contracts, accounted, own)
        self._accounts = {start: WindowAccounts.of(claim, self._group) for start, claim in self._claimed.items()}
        self._folder = WindowFolder(spark, address, contracts)
        self._folded: FoldedFiles | None = None
        self.failures: dict[datetime, str] = {}

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window that could be read, and keep its rows until `close`."""
        self.close()
        self._folded = self._folder.fold(self._list_files(self._accounts), keep=True)
        return self._take(self._folded)

    def look_again(
        self, beside: Mapping[datetime, Sequence[EpochSpan]], spare: Mapping[datetime, Sequence[OffsetRange]]
    ) -> dict[datetime, RebuiltWindow]:
        """Read these windows again, and return them; `aggregate` and `select_lines` follow. By window, the readings
        `beside` landed nowhere, though their IDs did under other leader epochs, and no landing holds the `spare`
        IDs."""
        windows = {*beside, *spare}
        if not windows:
            return {}
        for start in windows:
            less = spare.get(start, ())
            group = self._group.look_again(beside.get(start, ()), less)
            self._accounts[start] = WindowAccounts.of(self._claimed[start], group, less)
        again = self._folder.fold(self._list_files({start: self._accounts[start] for start in windows}), keep=True)
        if self._folded is not None:
            self._folded.replace(again)
        return self._take(again)

    def aggregate(self) -> DataFrame | None:
        """Return window_ms, keys and measures of the records that count, over all windows; None before `collect`."""
        return None if self._folded is None else self._folded.select_rows()

    def select_lines(self, windows: Collection[datetime]) -> DataFrame:
        """Return a line of each record of these windows that counts, as `compacted_files.write` takes them. Reads the
        windows again when it is used, and fails if one cannot be read then. Needs `collect`."""
        accounts = {start: each for start, each in self._accounts.items() if start in windows}
        if self._folded is None:
            raise ValueError("`collect` shows first which records count by their value")
        return self._folder.select_lines(self._list_files(accounts), self._folded.by_value)

    def close(self) -> None:
        if self._folded is not None:
            self._folded.close()
        self._folded = None

    def _length(self, start: datetime) -> int:
        return self._files[start].length if start in self._files else 0

    def _list_files(self, accounts: Mapping[datetime, WindowAccounts]) -> list[WindowFile]:
        return [
            WindowFile(to_ms(start), self._files[start].path if start in self._files else "", self._length(start),
                       each.accounts, self._compacted.get(start), self._claimed[start].by_value)
            for start, each in sorted(accounts.items())
        ]  # fmt: skip

    def _take(self, folded: FoldedFiles) -> dict[datetime, RebuiltWindow]:
        self.failures |= {from_ms(window_ms): error for window_ms, error in folded.failures.items()}
        return {from_ms(window_ms): self._rebuild(from_ms(window_ms), s) for window_ms, s in folded.summaries.items()}

    def _rebuild(self, start: datetime, summary: WindowSummary) -> RebuiltWindow:
        return self._accounts[start].rebuild(summary, self._length(start))
