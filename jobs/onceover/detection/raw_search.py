"""Search of raw for records that a person is about to accept as lost: what raw holds is adopted, and not lost."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime

from onceover.context import PipelineContext
from onceover.detection.evidence import read_evidence
from onceover.ledger.adoptions import list_days_beyond_landings
from onceover.ledger.certificates import list_pending
from onceover.model.line import PlacedLine, decode_file
from onceover.model.offsets import OffsetRange, intersect


def find_held_in_raw(
    context: PipelineContext, lost: Sequence[OffsetRange]
) -> tuple[datetime | date, OffsetRange] | None:
    """Return the first window, or day of quarantine, whose file has an intact line of these offsets that no landing
    accounts for, with the line's offset; None if no file does. `lost` are disjoint, in order.

    Reads the files with bytes that no landing accounts for, and those whose certificates name one of the offsets as
    pending: every other intact line has landed.
    """
    files = context.files
    for start in _list_suspects(context, lost):
        for offset in _find_offsets(files.read_window(start), lost):
            return start, offset
    for day in list_days_beyond_landings(context.ledger, context.name, files.list_quarantine_days()):
        for offset in _find_offsets(files.read_quarantine(day), lost):
            return day, offset
    return None


def _list_suspects(context: PipelineContext, lost: Sequence[OffsetRange]) -> list[datetime]:
    pending = list_pending(context.ledger, context.name)
    suspects = {start for start, ranges in pending.items() if intersect(ranges, lost)}
    for open_ones in (False, True):
        seen = read_evidence(context.ledger, context.name, None, None, open_ones, open_ones=open_ones)
        lengths = context.files.read_lengths(each.window_start for each in seen.evidence)
        suspects |= {
            each.window_start
            for each in seen.evidence
            if lengths.get(each.window_start, 0) > each.expected_length or each.unproved
        }
    return sorted(suspects)


def _find_offsets(chunks: Iterable[bytes], wanted: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    bounds = [(piece.source, piece.start) for piece in wanted]
    for placed in decode_file(chunks):
        if isinstance(placed, PlacedLine):
            record = placed.line.record
            at = bisect_right(bounds, (record.source, record.offset)) - 1
            if at >= 0 and wanted[at].source == record.source and record.offset < wanted[at].end:
                yield OffsetRange(record.source, record.offset, record.offset + 1)
