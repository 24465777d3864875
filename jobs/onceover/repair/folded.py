"""Windows rebuilt from raw: each folded by the task that reads it, and put together by the driver; doubtful ones twice.

The second look finds spare IDs, and records beside those that landed. A range that landed in the window covers a spare
ID, and no landing there holds it: a dead batch appended its line, and Kafka's compaction removed its record before the
offset was read again; or its record landed in another window, and counts there alone. A record is beside one that
landed if it has the same ID under another leader epoch, for the log was cut in between. It landed nowhere, and counts.
Each append is one stretch of a file, so a landing's bytes show which IDs of its range it landed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from onceover.context import PipelineContext
from onceover.errors import AccessDeniedError, is_denied
from onceover.ledger.extras import list_landed_spans
from onceover.ledger.landed_offsets import LandedBytes, list_covering
from onceover.lines.line_file import read_intact
from onceover.lines.line_format import compute_digest
from onceover.model.claim import ClaimedWindow
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import EpochSpan, subtract_spans
from onceover.model.offsets import KafkaPartition, OffsetRange, subtract
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.model.window import from_ms, to_ms
from onceover.raw.frozen_file import FrozenText
from onceover.raw.schema_files import SchemaFiles
from onceover.raw.window_files import WindowFiles
from onceover.repair.proof import list_doubtful
from onceover.repair.window_accounts import GroupAccounts, WindowAccounts
from onceover.spark.session import choose_codegen
from onceover.spark.window_folder import FoldedFiles, WindowFolder
from onceover.spark.window_reading import WindowFile


@contextmanager
def open_rebuild(
    spark: SparkSession,
    context: PipelineContext,
    contracts: Contracts,
    claimed: Sequence[ClaimedWindow],
    texts: Mapping[datetime, FrozenText],
    compacted: Mapping[datetime, FrozenText],
    *,
    accounted: Sequence[OffsetRange] = (),
    own: Sequence[OffsetRange] = (),
) -> Iterator[tuple[FoldedRebuild, dict[datetime, RebuiltWindow]]]:
    """Read windows as `FoldedRebuild` does, the doubtful ones twice, and keep their rows until the end of the block.
    Yields the rebuild, and each window that could be read."""
    size = sum(file.length for files in (texts, compacted) for file in files.values())
    rebuild = FoldedRebuild(
        spark, context.raw_address, contracts, claimed, accounted, own, texts, compacted, context.schemas
    )
    with choose_codegen(spark, size), closing(rebuild):
        yield rebuild, look_again(context, rebuild, claimed, rebuild.collect())


def list_texts(files: WindowFiles, lengths: Mapping[datetime, int]) -> dict[datetime, FrozenText]:
    """Return the text of windows by its frozen length, but for empty and missing files."""
    return {start: FrozenText(files.layout.window_file(start), length) for start, length in lengths.items() if length}


def list_compacted(files: WindowFiles, claimed: Iterable[ClaimedWindow]) -> dict[datetime, FrozenText]:
    """Return the compacted files that replace these windows' text. A file that is missing, or has another length than
    was recorded, is left out: its records are missed, and its window fails alone."""
    compacted = {claim.window_start: claim.compacted for claim in claimed if claim.compacted}
    paths = files.find_compacted_files(compacted)
    return {start: FrozenText(path, compacted[start].bytes) for start, path in paths.items()}


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
        schemas: SchemaFiles | None = None,
    ) -> None:
        self._claimed, self._files = {claim.window_start: claim for claim in claimed}, files
        self._compacted = compacted
        self._group = GroupAccounts.of(contracts, accounted, own)
        self._accounts = {start: WindowAccounts.of(claim, self._group) for start, claim in self._claimed.items()}
        self._folder = WindowFolder(spark, address, contracts, schemas)
        self._folded: FoldedFiles | None = None
        self.failures: dict[datetime, str] = {}

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window that could be read, and keep its rows until `close`. Raise
        AccessDeniedError if this user may not read one: no window is to blame."""
        self.close()
        self._folded = self._folder.fold(self._list_files(self._accounts))
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
        again = self._folder.fold(self._list_files({start: self._accounts[start] for start in windows}))
        self._require_folded().replace(again)
        return self._take(again)

    def aggregate(self) -> DataFrame:
        """Return window_ms, keys and measures of the records that count, over all windows. Needs `collect`."""
        return self._require_folded().select_rows()

    def select_lines(self, windows: Collection[datetime]) -> DataFrame:
        """Return a line of each record of these windows that counts, as `compacted_files.write` takes them. Reads the
        windows again when it is used, and fails if one cannot be read then. Needs `collect`."""
        accounts = {start: each for start, each in self._accounts.items() if start in windows}
        return self._folder.select_lines(self._list_files(accounts), self._require_folded().by_value)

    def close(self) -> None:
        if self._folded is not None:
            self._folded.close()
        self._folded = None

    def _require_folded(self) -> FoldedFiles:
        if self._folded is None:
            raise ValueError("`collect` shows first which records count")
        return self._folded

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
        if denied := next(filter(is_denied, self.failures.values()), None):
            raise AccessDeniedError(denied)
        summaries = {from_ms(window_ms): summary for window_ms, summary in folded.summaries.items()}
        return {start: self._accounts[start].rebuild(each, self._length(start)) for start, each in summaries.items()}


def look_again(
    context: PipelineContext,
    rebuild: FoldedRebuild,
    claimed: Iterable[ClaimedWindow],
    rebuilt: Mapping[datetime, RebuiltWindow],
) -> dict[datetime, RebuiltWindow]:
    """Return the windows, and those that are rebuilt otherwise once it is known which of their records landed nowhere.
    Reads these again; `aggregate` and `select_lines` follow."""
    read = {claim.window_start: claim for claim in claimed if claim.window_start in rebuilt}
    spare = {
        start: ids
        for start, claim in read.items()
        if (doubtful := list_doubtful(claim, rebuilt[start])) and (ids := find_spare(context, start, doubtful))
    }
    beside = {start: found for start, each in rebuilt.items() if (found := find_beside(context, each))}
    again = rebuild.look_again(beside, spare)
    return {start: each for start, each in rebuilt.items() if start not in {*spare, *beside}} | again


def find_spare(
    context: PipelineContext, window_start: datetime, doubtful: Sequence[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Return those of the window's `doubtful` offsets that no landing in it holds, but for offsets in ranges of its
    landings whose bytes are gone or damaged: those may hold them."""
    covering = list_covering(context.ledger, context.name, doubtful)
    own = (each for each in covering.landed if each.window_start == window_start)
    return subtract(doubtful, [*covering.exact, *read_landed(context.files, own)])


def find_beside(context: PipelineContext, rebuilt: RebuiltWindow) -> list[EpochSpan]:
    """Return those of the window's stray readings that landed nowhere, under their leader epoch."""
    offsets = [each.offsets for each in rebuilt.strays]
    return subtract_spans(rebuilt.strays, list_landed_spans(context.ledger, context.name, offsets)) if offsets else []


def read_landed(files: WindowFiles, landings: Iterable[LandedBytes]) -> Iterable[OffsetRange]:
    """Yield the IDs that these landings hold, or the whole range of one whose bytes do not show it."""
    of_landing: dict[int, list[LandedBytes]] = {}
    for part in landings:
        of_landing.setdefault(part.landing_id, []).append(part)
    for parts in of_landing.values():
        ids: dict[KafkaPartition, list[OffsetRange]] = {}
        digests: dict[KafkaPartition, Digest] = {}
        for record in _read_records(files, parts[0]) if parts[0].is_there else ():
            source, at = record.source, record.offset
            ids.setdefault(source, []).append(OffsetRange(source, at, at + 1))
            digests[source] = digests.get(source, EMPTY) + compute_digest([record])
        for part in parts:
            source = part.offsets.source
            yield from ids[source] if digests.get(source) == part.digest else [part.offsets]


def _read_records(files: WindowFiles, part: LandedBytes) -> Iterator[Record]:
    path = files.layout.window_file(part.window_start)
    for line in read_intact(files.read_bytes(path, part.start, part.end)):
        yield line.record
