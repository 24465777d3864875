"""Windows rebuilt from raw format 3: each folded by the task that reads it, the driver asks and puts together.

What one window does not show, an ID in two of them, the driver finds among `shared` IDs, which two landed batches read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from onceover.lines.summary import WindowSummary
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY
from onceover.model.offsets import OffsetRange, coalesce, intersect
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.window import from_ms, to_ms
from onceover.raw.frozen_file import FrozenText
from onceover.repair.shared_ids import add_shared_conflicts, find_in_two
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts
from onceover.spark.fold_tasks import WindowFile
from onceover.spark.window_folder import FoldedFiles, WindowFolder


class FoldedRebuild:
    """The rebuild of some windows, each from its text in `files` and its file in `compacted`; one without either has no
    lines.

    `collect` runs the query, and what it read of a window that fails is in `failures` alone. `aggregate` has the rows
    of the other windows. `accounted`, `own` and `shared` are as in `Accounts`.
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
        shared: Sequence[OffsetRange] = (),
        compacted: Mapping[datetime, FrozenText] = MappingProxyType({}),
    ) -> None:
        self._claimed, self._files = {claim.window_start: claim for claim in claimed}, files
        self._compacted = compacted
        self._group = GroupAccounts.of(contracts, accounted, own, shared)
        self._accounts = {start: WindowAccounts.of(claim, self._group) for start, claim in self._claimed.items()}
        self._folder = WindowFolder(spark, address, contracts)
        self._folded: FoldedFiles | None = None
        self.failures: dict[datetime, str] = {}

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window that could be read, and keep its rows until `close`."""
        self.close()
        self._folded = self._folder.fold(self._list_files(self._accounts), keep=True)
        summaries = self._take(self._folded)
        rebuilt = {start: self._rebuild(start, each) for start, each in summaries.items()}
        return self._add_repeated(rebuilt, summaries)

    def compare_windows(
        self, rebuilt: Mapping[datetime, RebuiltWindow], doubtful: Mapping[datetime, Sequence[OffsetRange]]
    ) -> dict[datetime, RebuiltWindow]:
        """Return the windows with each of the `doubtful` IDs, of which some hold other records than landed there, that
        two of them hold: as a conflict if its contents differ, and as misdated if its event times do. Reads the windows
        that may hold them again.

        `collect` compares the `shared` IDs alone: a batch lands an ID in one window, but a file may hold lines that no
        batch landed there.
        """
        offsets = coalesce(piece for pieces in doubtful.values() for piece in pieces)
        if not offsets:
            return dict(rebuilt)
        starts = [start for start in rebuilt if start in doubtful or intersect(self._list_ids(start), offsets)]
        return self._add_repeated(rebuilt, self._fold_with(starts, offsets, self._group.share(offsets)))

    def drop_spare(
        self, rebuilt: Mapping[datetime, RebuiltWindow], spare: Sequence[OffsetRange], windows: Collection[datetime]
    ) -> dict[datetime, RebuiltWindow]:
        """Return the windows, and of these `windows` the records without the `spare` IDs, which ranges that landed
        cover, and no landing holds. Reads these windows again; `aggregate` and `select_lines` leave the IDs out too."""
        if not spare:
            return dict(rebuilt)
        group = self._group.spare_ids(spare)
        for start in windows:
            self._accounts[start] = WindowAccounts.of(self._claimed[start], group, spare)
        again = self._folder.fold(self._list_files({start: self._accounts[start] for start in windows}), keep=True)
        if self._folded is not None:
            self._folded.replace(again)
        return dict(rebuilt) | {start: self._rebuild(start, each) for start, each in self._take(again).items()}

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

    def _add_repeated(
        self, rebuilt: Mapping[datetime, RebuiltWindow], summaries: Mapping[datetime, WindowSummary]
    ) -> dict[datetime, RebuiltWindow]:
        """Return the windows with the shared IDs that two of them hold. Reads windows with such IDs again."""
        repeated = find_in_two(summary.shared for summary in summaries.values())
        if not repeated:
            return dict(rebuilt)
        starts = [start for start, summary in summaries.items() if len(summary.shared)]
        found = self._fold_with(starts, repeated, self._group.list_contents(repeated))
        return add_shared_conflicts(rebuilt, {start: summary.listed for start, summary in found.items()})

    def _fold_with(
        self, starts: Iterable[datetime], offsets: Sequence[OffsetRange], group: GroupAccounts
    ) -> dict[datetime, WindowSummary]:
        """Return the summaries of these windows as if the offsets had landed in each of them too."""
        landing = ClaimedLanding(0, tuple((piece, EMPTY) for piece in offsets))
        claims = {
            start: replace(c, landings=(*c.landings, landing)) for start in starts for c in [self._claimed[start]]
        }
        accounts = {start: WindowAccounts.of(claim, group) for start, claim in claims.items()}
        return self._take(self._folder.fold(self._list_files(accounts), keep=False))

    def _list_ids(self, start: datetime) -> tuple[OffsetRange, ...]:
        return coalesce(piece for landing in self._claimed[start].landings for piece in landing.ids)

    def _rebuild(self, start: datetime, summary: WindowSummary) -> RebuiltWindow:
        return self._accounts[start].rebuild(summary, self._length(start))

    def _length(self, start: datetime) -> int:
        return self._files[start].length if start in self._files else 0

    def _list_files(self, accounts: Mapping[datetime, WindowAccounts]) -> list[WindowFile]:
        return [
            WindowFile(to_ms(start), self._files[start].path if start in self._files else "", self._length(start),
                       each.accounts, self._compacted.get(start), self._claimed[start].by_value)
            for start, each in sorted(accounts.items())
        ]  # fmt: skip

    def _take(self, folded: FoldedFiles) -> dict[datetime, WindowSummary]:
        self.failures |= {from_ms(window_ms): error for window_ms, error in folded.failures.items()}
        return {from_ms(window_ms): summary for window_ms, summary in folded.summaries.items()}
