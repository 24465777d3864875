"""Expiry of raw by the pipeline's driver: files marked in the ledger are moved aside, and deleted a day later.

An expired window keeps its certificate, is skipped by detection and refused by repair. A window whose records are in a
Parquet file as well has not expired.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from onceover.errors import UsageError
from onceover.ledger import compactions, drivers, expiries
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.expiries import ExpiringFile
from onceover.model.raw_file import CompactedFile
from onceover.model.window import WindowRange, format_moment
from onceover.raw.layout import Layout

log = logging.getLogger(__name__)
MOST_AT_ONCE = 200
"""Files between two batches: takes some tenths of a second."""


class ExpiringFiles(Protocol):
    """Files of a pipeline; `number` is the id of the expiry, as a path may expire more than once."""

    layout: Layout

    def is_aside(self, path: str, number: int) -> bool: ...
    def set_aside(self, path: str, number: int) -> None: ...
    def delete_aside(self, path: str, number: int) -> None: ...
    def find_parquet_files(self, compacted: Mapping[datetime, CompactedFile]) -> Mapping[datetime, str]: ...


def carry_out(connection: Connection, epoch: Epoch, files: ExpiringFiles) -> int:
    """Move aside some of the expired files and delete some that were moved a day ago, as the pipeline's driver; return
    how many files. If killed, the next driver repeats the step.

    Text that a Parquet file replaces is kept while that file is missing or has another length than recorded.
    """
    expiring = expiries.list_files_to_move(connection, epoch.pipeline, MOST_AT_ONCE)
    sole_copies = _find_sole_copies(connection, epoch.pipeline, files, expiring)
    for file in expiring:
        path = locate_file(files.layout, file)
        if not files.is_aside(path, file.expiry_id):  # else a driver died before it could record the move
            if file.window_start in sole_copies:
                log.warning("%s is kept: the Parquet file of its window is missing; compact the window again", path)
                compactions.forget_compaction(connection, epoch.pipeline, file.window_start)
            if file.window_start in sole_copies or expiries.is_touched(connection, epoch.pipeline, file):
                expiries.mark_dropped(connection, epoch, file)
                continue
            drivers.beat(connection, epoch)
            files.set_aside(path, file.expiry_id)
        expiries.mark_moved(connection, epoch, file.expiry_id)
    deleted = 0
    aside = expiries.list_files_to_delete(connection, epoch.pipeline, MOST_AT_ONCE)
    sole_copies = _find_sole_copies(connection, epoch.pipeline, files, aside)
    for file in aside:
        path = locate_file(files.layout, file)
        if file.window_start in sole_copies:
            log.warning(
                "%s is not deleted: the Parquet file of its window is missing; put it back at the path that "
                "`onceover explain` shows", files.layout.aside(path, file.expiry_id),
            )  # fmt: skip
            continue
        drivers.beat(connection, epoch)
        files.delete_aside(path, file.expiry_id)
        expiries.mark_deleted(connection, epoch, file.expiry_id)
        deleted += 1
    return len(expiring) + deleted


def _find_sole_copies(
    connection: Connection, pipeline: str, files: ExpiringFiles, texts: Sequence[ExpiringFile]
) -> set[datetime]:
    """Return the windows whose text is the sole copy, because the Parquet file that should replace it is missing. Files
    that expire without a Parquet file do not count."""
    starts = [text.window_start for text in texts if text.window_start is not None]
    needed = compactions.list_substitutes(connection, pipeline, starts)
    present = files.find_parquet_files({start: compacted for start, compacted in needed.items() if compacted})
    return needed.keys() - present.keys()


def refuse_expired(connection: Connection, pipeline: str, window_range: WindowRange | None) -> None:
    """Raise UsageError for a range whose windows have all expired; of a partly expired range the rest can be judged."""
    if window_range is not None and expiries.is_range_expired(
        connection, pipeline, window_range.start, window_range.end
    ):
        raise UsageError(
            f"raw of {pipeline}'s windows from {format_moment(window_range.start)} to "
            f"{format_moment(window_range.end)} has expired by the pipeline's retention: they cannot be repaired; "
            "only their certificates are left"
        )


def locate_file(layout: Layout, file: ExpiringFile) -> str:
    """Return the path of an expiring file, from before it was moved."""
    if file.window_start is not None:
        return layout.window_file(file.window_start)
    if file.quarantine_day is None:
        raise ValueError(f"expiry {file.expiry_id} names no window and no day of quarantine")
    return layout.quarantine_file(file.quarantine_day)
