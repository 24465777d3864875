"""Spare IDs: a range that landed covers them, and no landing holds them. A dead batch appended their lines, and Kafka's
compaction removed their records before their offsets were read again: they count for nothing.

Each append is one stretch of a file, so a landing's bytes show which IDs of its range it landed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from onceover.context import PipelineContext
from onceover.ledger.landed_bytes import LandedBytes, list_covering
from onceover.lines.line_file import PlacedLine, decode_file
from onceover.lines.reference import compute_digest
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import Record
from onceover.raw.window_files import WindowFiles
from onceover.repair.folded import FoldedRebuild
from onceover.repair.proof import prove


def drop_spare(
    context: PipelineContext,
    rebuild: FoldedRebuild,
    claimed: Iterable[ClaimedWindow],
    rebuilt: Mapping[datetime, RebuiltWindow],
) -> dict[datetime, RebuiltWindow]:
    """Return the windows without spare IDs. Reads doubtful ones again; `aggregate` and `select_lines` follow."""
    doubtful = list_doubtful(claimed, rebuilt)
    return rebuild.drop_spare(rebuilt, find_spare(context, doubtful), doubtful)


def list_doubtful(
    claimed: Iterable[ClaimedWindow], rebuilt: Mapping[datetime, RebuiltWindow]
) -> dict[datetime, Sequence[OffsetRange]]:
    """Return by window the offsets of which raw holds other records than landed in it."""
    read = {claim.window_start: claim for claim in claimed if claim.window_start in rebuilt}
    doubtful = {start: prove(claim, rebuilt[start]).doubtful for start, claim in read.items()}
    return {start: ranges for start, ranges in doubtful.items() if ranges}


def find_spare(context: PipelineContext, doubtful: Mapping[datetime, Sequence[OffsetRange]]) -> tuple[OffsetRange, ...]:
    """Return those of the `doubtful` offsets that no landing holds, but for offsets in ranges of landings whose bytes
    are gone or damaged: those landings may hold them."""
    if not doubtful:
        return ()
    ranges = coalesce(piece for pieces in doubtful.values() for piece in pieces)
    covering = list_covering(context.ledger, context.name, ranges)
    return subtract(ranges, [*covering.exact, *read_landed(context.files, covering.landed)])


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
    for placed in decode_file(files.read_bytes(path, part.start, part.end)):
        if isinstance(placed, PlacedLine):
            yield placed.line.record
