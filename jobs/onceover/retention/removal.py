"""Expiry of raw by the pipeline's driver: files marked in the ledger are moved aside, and deleted a day later.

An expired window keeps its certificate, is skipped by detection and refused by repair. A window whose records are in a
compacted file as well has not expired.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from onceover.errors import UsageError
from onceover.ledger import compactions, drivers, expiries
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.expiries import ExpiringFile
from onceover.model.raw_file import CompactedFile
from onceover.model.window import WindowRange, format_moment
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles

log = logging.getLogger(__name__)
MAX_AT_ONCE = 200
"""Files between two batches: takes some tenths of a second."""


def carry_out(connection: Connection, epoch: Epoch, files: WindowFiles) -> int:
    """Move aside some of the expired files and delete some that were moved a day ago, as the pipeline's driver; return
    how many files. If killed, the next driver repeats the step.

    Text that a compacted file replaces is kept while that file is missing or has another length than recorded. A file
    that holds more than had expired is kept, or brought back if it was moved.
    """
    expiring = expiries.list_files_to_move(connection, epoch.pipeline, MAX_AT_ONCE)
    substitutes = _list_substitutes(connection, epoch.pipeline, expiring)
    sole_copies = _find_sole_copies(files, substitutes)
    # Of the others no compacted file replaces the text: once it is moved away, they have no raw.
    if without_raw := [start for start in _list_starts(expiring) if start not in substitutes]:
        drivers.beat(connection, epoch)
        files.expired.add(without_raw)  # before any of them moves
    for file in expiring:
        _move_or_keep(connection, epoch, files, file, file.window_start in sole_copies)
    aside = expiries.list_files_to_delete(connection, epoch.pipeline, MAX_AT_ONCE)
    sole_copies = _find_sole_copies(files, _list_substitutes(connection, epoch.pipeline, aside))
    postponed = [file for file in aside if file.window_start in sole_copies]
    if postponed:
        expiries.postpone_deletions(connection, epoch, [file.expiry_id for file in postponed])
        first = postponed[0]
        log.warning(
            "%d files are not deleted, as the compacted files of their windows are missing; put each back at the path "
            "that `onceover explain` shows, the first of them %s",
            len(postponed), files.layout.aside(locate_file(files.layout, first), first.expiry_id),
        )  # fmt: skip
    for file in aside:
        if file.window_start not in sole_copies:
            _delete_or_bring_back(connection, epoch, files, file)
    return len(expiring) + len(aside)


def _move_or_keep(
    connection: Connection, epoch: Epoch, files: WindowFiles, file: ExpiringFile, is_sole_copy: bool
) -> None:
    """Move one file aside, unless it has changed since it expired. A fenced driver may have moved it meanwhile."""
    path, number = locate_file(files.layout, file), file.expiry_id
    moved = files.read_length(files.layout.aside(path, number))  # by a driver that died before it could record that
    is_barred = moved == 0
    if not moved:
        has_grown = _has_grown(file, files.read_length(path))
        is_kept = is_barred or is_sole_copy or has_grown or expiries.is_touched(connection, epoch.pipeline, file)
        drivers.beat(connection, epoch)
        if not is_kept:
            files.set_aside(path, number)
            moved = file.bytes
        elif is_barred or files.bar_aside(path, number):
            if is_sole_copy and file.window_start is not None:
                log.warning("%s is kept: the compacted file of its window is missing; compact the window again", path)
                compactions.forget_compaction(connection, epoch.pipeline, file.window_start)
            _forget_expired(files, file)
            expiries.mark_dropped(connection, epoch, file, judge_again=has_grown)
            return
        else:
            moved = files.read_length(files.layout.aside(path, number))
    if _has_grown(file, moved):
        _bring_back(connection, epoch, files, file)
    else:
        expiries.mark_moved(connection, epoch, number)


def _delete_or_bring_back(connection: Connection, epoch: Epoch, files: WindowFiles, file: ExpiringFile) -> None:
    path, number = locate_file(files.layout, file), file.expiry_id
    if _has_grown(file, files.read_length(files.layout.aside(path, number))):
        _bring_back(connection, epoch, files, file)
        return
    drivers.beat(connection, epoch)
    files.delete_aside(path, number)
    expiries.mark_deleted(connection, epoch, number)


def _bring_back(connection: Connection, epoch: Epoch, files: WindowFiles, file: ExpiringFile) -> None:
    path = locate_file(files.layout, file)
    log.warning("%s is brought back: a paused driver moved it, and it holds more than the %d bytes that had expired",
                path, file.bytes)  # fmt: skip
    drivers.beat(connection, epoch)
    files.bring_back(path, file.expiry_id)
    _forget_expired(files, file)
    expiries.mark_dropped(connection, epoch, file, judge_again=True, brought_back=True)


def _has_grown(file: ExpiringFile, length: int | None) -> bool:
    """Return whether a window's file of that length holds more than its certificate covers. A day of quarantine has no
    certificate: bytes beyond its landings expire with it."""
    return file.window_start is not None and (length or 0) > file.bytes


def _forget_expired(files: WindowFiles, file: ExpiringFile) -> None:
    if file.window_start is not None:
        files.expired.remove([file.window_start])


def _list_starts(texts: Sequence[ExpiringFile]) -> list[datetime]:
    return [text.window_start for text in texts if text.window_start is not None]


def _list_substitutes(
    connection: Connection, pipeline: str, texts: Sequence[ExpiringFile]
) -> Mapping[datetime, CompactedFile | None]:
    """Return, of the windows whose text a compacted file is to replace, that file. Files that expire without one do not
    count."""
    starts = _list_starts(texts)
    return compactions.list_substitutes(connection, pipeline, starts) if starts else {}


def _find_sole_copies(files: WindowFiles, needed: Mapping[datetime, CompactedFile | None]) -> set[datetime]:
    """Return the windows whose text is the sole copy, because the compacted file that should replace it is missing."""
    present = files.find_compacted_files({start: compacted for start, compacted in needed.items() if compacted})
    return needed.keys() - present.keys()


def refuse_expired(connection: Connection, pipeline: str, window_range: WindowRange | None) -> None:
    """Raise UsageError for a range whose windows have all expired; of a partly expired range the rest can be judged."""
    if window_range is not None and expiries.is_range_expired(
        connection, pipeline, window_range.start, window_range.end
    ):
        raise UsageError(
            f"raw of {pipeline}'s windows from {format_moment(window_range.start)} to "
            f"{format_moment(window_range.end)} has expired: they cannot be repaired; list them with `onceover "
            f"windows {pipeline} --state expired`, and see why with `onceover explain`"
        )


def locate_file(layout: Layout, file: ExpiringFile) -> str:
    """Return the path of an expiring file, from before it was moved."""
    if file.window_start is not None:
        return layout.window_file(file.window_start)
    if file.quarantine_day is None:
        raise ValueError(f"expiry {file.expiry_id} names no window and no day of quarantine")
    return layout.quarantine_file(file.quarantine_day)
