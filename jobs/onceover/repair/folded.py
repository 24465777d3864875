"""Windows rebuilt from raw format 3: each folded by the task that reads it, the driver asks and puts together.

What one window does not show, an ID in two of them, the driver finds: among `shared` IDs, which two landed batches
read, and among the unlanded ones.
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
from onceover.model.own_offsets import OwnOffsets
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.unlanded import Unlanded
from onceover.model.window import from_ms, to_ms
from onceover.raw.frozen_file import FrozenText
from onceover.repair.shared_ids import add_contents, add_shared_conflicts, find_in_two
from onceover.repair.unlanded_runs import drop_repeated, end_orphans, find_repeated, sort_runs
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts
from onceover.spark.fold_tasks import WindowFile
from onceover.spark.window_folder import FoldedFiles, WindowFolder


class FoldedRebuild:
    """The rebuild of some windows, each from its text in `files` and its file in `compacted`; one without either has no
    lines.

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
        compacted: Mapping[datetime, FrozenText] = MappingProxyType({}),
    ) -> None:
        self._claimed, self._files = {claim.window_start: claim for claim in claimed}, files
        self._compacted = compacted
        self._group = GroupAccounts.of(contracts, accounted, shared)
        self._accounts = {start: WindowAccounts.of(claim, self._group) for start, claim in self._claimed.items()}
        self._folder = WindowFolder(spark, address, contracts)
        self._folded: FoldedFiles | None = None
        self._repeated: Sequence[OffsetRange] = ()  # orphans that are in two windows
        self.failures: dict[datetime, str] = {}

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window that could be read, and keep its rows until `close`."""
        self.close()
        self._folded = self._folder.fold(self._list_files(self._accounts), keep=True)
        summaries = self._take(self._folded)
        rebuilt = {start: self._accounts[start].rebuild(each, self._length(start)) for start, each in summaries.items()}
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

    def collect_unlanded(
        self, held: Sequence[OffsetRange], own: OwnOffsets | None
    ) -> tuple[dict[datetime, Unlanded], bool]:
        """Return the windows with intact lines that no landing accounts for, and whether these are all; Kafka's log
        holds the offsets `held`, and the pipeline's lines have its `own`. Reads these windows again."""
        unlanded = self._list_unlanded()
        summaries = end_orphans(self._fold_again(unlanded, self._group.ask_log(held, own)))
        if repeated := find_repeated(summaries):
            self._repeated = repeated
            again = self._fold_again(unlanded, self._group.ask_log(coalesce((*held, *repeated)), own))
            summaries = end_orphans(again, min(summary.runs.until for summary in summaries.values()))
        is_whole = all(summary.runs.is_whole for summary in summaries.values())
        found = {start: drop_repeated(sort_runs(summary), repeated) for start, summary in summaries.items()}
        if not is_whole:
            found = {start: replace(each, pending=(), beyond=()) for start, each in found.items() if each.orphans}
        return found, is_whole

    def collect_beside(self, offsets: Sequence[OffsetRange]) -> dict[datetime, Unlanded]:
        """Return by window, as orphans, the lines with these accounted IDs, whichever landing's range holds them. Reads
        all windows again."""
        if not offsets:
            return {}
        summaries = end_orphans(self._fold_again(self._list_summaries(), self._group.search(offsets), offsets))
        if repeated := find_repeated(summaries):
            again = self._fold_again(summaries, self._group.search(offsets, repeated), offsets)
            summaries = end_orphans(again, min(summary.runs.until for summary in summaries.values()))
        found = {start: drop_repeated(sort_runs(summary), repeated) for start, summary in summaries.items()}
        return {start: replace(each, foreign=0) for start, each in found.items() if each.orphans or each.conflicts}

    def add_contested_ids(self, rebuilt: Mapping[datetime, RebuiltWindow]) -> dict[datetime, RebuiltWindow]:
        """Return the windows with all contested IDs, also those that no landing accounts for. A summary has those of
        one window; orphans that `collect_unlanded` found in two are read again."""
        if not self._repeated:
            return dict(rebuilt)
        landing = ClaimedLanding(0, tuple((piece, EMPTY) for piece in self._repeated))
        starts, group = self._list_unlanded(), self._group.list_unlanded(self._repeated)
        claims = [replace(self._claimed[start], landings=(landing,), decisions=()) for start in starts]
        accounts = {claim.window_start: WindowAccounts.of(claim, group) for claim in claims}
        summaries = self._take(self._folder.fold(self._list_files(accounts), keep=False))
        return add_contents(rebuilt, {start: summary.listed for start, summary in summaries.items()})

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

    def _length(self, start: datetime) -> int:
        return self._files[start].length if start in self._files else 0

    def _list_files(self, accounts: Mapping[datetime, WindowAccounts]) -> list[WindowFile]:
        return [
            WindowFile(to_ms(start), self._files[start].path if start in self._files else "", self._length(start),
                       each.accounts, self._compacted.get(start), self._claimed[start].by_value)
            for start, each in sorted(accounts.items())
        ]  # fmt: skip

    def _fold_again(
        self, starts: Iterable[datetime], group: GroupAccounts, without: Sequence[OffsetRange] = ()
    ) -> dict[datetime, WindowSummary]:
        """Return the summaries of these windows under other accounts; a window that cannot be read now has failed."""
        accounts = {start: WindowAccounts.of(self._claimed[start], group, without) for start in starts}
        return self._take(self._folder.fold(self._list_files(accounts), keep=False))

    def _take(self, folded: FoldedFiles) -> dict[datetime, WindowSummary]:
        self.failures |= {from_ms(window_ms): error for window_ms, error in folded.failures.items()}
        return {from_ms(window_ms): summary for window_ms, summary in folded.summaries.items()}

    def _list_summaries(self) -> dict[datetime, WindowSummary]:
        summaries = {} if self._folded is None else self._folded.summaries
        return {from_ms(window_ms): summary for window_ms, summary in summaries.items()}

    def _list_unlanded(self) -> list[datetime]:
        return [start for start, summary in self._list_summaries().items() if summary.unlanded]
