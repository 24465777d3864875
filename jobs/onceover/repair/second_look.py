"""What a second look at doubtful windows finds: spare IDs, and records beside those that landed.

A range that landed in the window covers a spare ID, and no landing there holds it: a dead batch appended its line, and
Kafka's compaction removed its record before the offset was read again; or its record landed in another window, and
counts there alone. A record is beside one that landed if it has the same ID under another leader epoch, for the log was
cut in between. It landed nowhere, and counts.

Each append is one stretch of a file, so a landing's bytes show which IDs of its range it landed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from onceover.context import PipelineContext
from onceover.ledger.extras import list_landed_spans
from onceover.ledger.landed_offsets import LandedBytes, list_covering
from onceover.lines.line_file import read_intact
from onceover.lines.line_reference import compute_digest
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import EpochSpan, subtract_spans
from onceover.model.offsets import KafkaPartition, OffsetRange, subtract
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.raw.window_files import WindowFiles
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import list_doubtful


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
    if part.window_start is not None:
        path = files.layout.window_file(part.window_start)
    elif part.quarantine_day is not None:
        path = files.layout.quarantine_file(part.quarantine_day)
    else:
        return
    for line in read_intact(files.read_bytes(path, part.start, part.end)):
        yield line.record
