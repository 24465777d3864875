"""Search of raw for records that a person is about to accept as lost: what raw holds is adopted, and not lost."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import takewhile

from onceover.context import PipelineContext
from onceover.detection.unexplained_files import list_unexplained_files
from onceover.detection.unknown_files import register_unknown_files
from onceover.ledger.certificates import list_pending
from onceover.ledger.quarantine_days import list_unexplained_days
from onceover.ledger.searched_windows import was_searched
from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_file import split_at_lines
from onceover.lines.reference import ID, decode
from onceover.model.offsets import OffsetRange, intersect
from onceover.model.record import encode_id

_NEWLINE = ord("\n")


def find_held_in_raw(
    context: PipelineContext, lost: Sequence[OffsetRange]
) -> tuple[datetime | date, OffsetRange] | None:
    """Return the first window, or day of quarantine, whose file has an intact line of these offsets that no landing
    accounts for, with the line's offset; None if no file does. `lost` are disjoint, in order.

    Reads the files whose length the ledger does not explain, whatever the state of their windows, and those whose
    certificates name one of the offsets as pending: every other intact line has landed, or a repair found that it
    belongs elsewhere.
    """
    files = context.files
    register_unknown_files(context, context.read_registration(), every=True)
    for start in _list_searchable(context, lost):
        for offset in find_offsets(files.read_window(start), lost):
            return start, offset
    for day in list_unexplained_days(context.ledger, context.name, files.list_quarantine_days()):
        for offset in find_offsets(files.read_quarantine(day), lost, quarantined=True):
            return day, offset
    return None


def _list_searchable(context: PipelineContext, lost: Sequence[OffsetRange]) -> list[datetime]:
    pending = list_pending(context.ledger, context.name)
    searchable = {start for start, ranges in pending.items() if intersect(ranges, lost)}
    for file in list_unexplained_files(context.ledger, context.name, context.files):
        if not was_searched(context.ledger, context.name, file.window_start, file.length):
            searchable.add(file.window_start)
    return sorted(searchable)


def find_offsets(
    chunks: Iterable[bytes], wanted: Sequence[OffsetRange], *, quarantined: bool = False
) -> Iterator[OffsetRange]:
    """Yield each of these offsets of which a file has an intact line, in the file's order; with `quarantined`, one
    without an event time, for no other is adopted from quarantine. `wanted` are disjoint, in order.

    Compares bytes, for lines sort by their IDs, and decodes only lines of these offsets: a gigabyte takes seconds.
    """
    firsts = [encode_id(piece.source, piece.start) for piece in wanted]
    lasts = [encode_id(piece.source, piece.end - 1) for piece in wanted]
    prefix = bytes(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(firsts[0], lasts[-1], strict=True)))
    for block in split_at_lines(chunks):
        at = block.find(prefix)
        while at >= 0:
            end = block.find(b"\n", at)
            if at == 0 or block[at - 1] == _NEWLINE:
                record_id = block[at : at + ID.stop]
                number = bisect_right(firsts, record_id) - 1
                if number >= 0 and record_id <= lasts[number] and (offset := _read_offset(block[at:end], quarantined)):
                    yield offset
            at = block.find(prefix, end + 1)


def _read_offset(data: bytes, quarantined: bool) -> OffsetRange | None:
    try:
        line = decode(data)
    except CorruptLineError:
        return None
    if quarantined and line.event_ms is not None:
        return None
    record = line.record
    return OffsetRange(record.source, record.offset, record.offset + 1)
