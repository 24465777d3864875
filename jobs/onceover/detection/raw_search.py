"""Search of raw for records that a person is about to accept as lost: what raw holds is adopted, and not lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime

from onceover.context import PipelineContext
from onceover.detection.evidence import read_evidence
from onceover.ledger.adoptions import list_days_beyond_landings
from onceover.ledger.certificates import list_pending
from onceover.model.line import PlacedLine, decode_file
from onceover.model.offsets import OffsetRange


def find_held_in_raw(context: PipelineContext, lost: OffsetRange) -> tuple[datetime | date, OffsetRange] | None:
    """Return the first window, or day of quarantine, whose file has an intact line of these offsets that no landing
    accounts for, with the line's offset; None if no file does.

    Reads the files with bytes that no landing accounts for, and those whose certificates name one of the offsets as
    pending: every other intact line has landed.
    """
    files = context.files
    for start in _list_suspects(context, lost):
        for offset in _find_offsets(files.read_window(start), lost):
            return start, OffsetRange(lost.source, offset, offset + 1)
    for day in list_days_beyond_landings(context.ledger, context.name, files.list_quarantine_days()):
        for offset in _find_offsets(files.read_quarantine(day), lost):
            return day, OffsetRange(lost.source, offset, offset + 1)
    return None


def _list_suspects(context: PipelineContext, lost: OffsetRange) -> list[datetime]:
    pending = list_pending(context.ledger, context.name)
    suspects = {start for start, ranges in pending.items() if any(lost.overlaps(piece) for piece in ranges)}
    for open_ones in (False, True):
        seen = read_evidence(context.ledger, context.name, None, None, open_ones, open_ones=open_ones)
        lengths = context.files.read_lengths(each.window_start for each in seen.evidence)
        suspects |= {
            each.window_start
            for each in seen.evidence
            if lengths.get(each.window_start, 0) > each.expected_length or each.unproved
        }
    return sorted(suspects)


def _find_offsets(chunks: Iterable[bytes], wanted: OffsetRange) -> Iterator[int]:
    for placed in decode_file(chunks):
        if isinstance(placed, PlacedLine):
            record = placed.line.record
            if record.source == wanted.source and wanted.start <= record.offset < wanted.end:
                yield record.offset
