"""Raw goes when it is older than its pipeline keeps it: listed first, let go in the ledger, moved away by the driver,
and deleted a day later. What is gone is `expired`: its certificate stays, detection is silent, a repair is refused. A
window whose records stand in a Parquet file as well has not expired.
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
from onceover.ledger.expiries import Expiring
from onceover.model.raw_file import Compacted
from onceover.model.window import WindowRange, written
from onceover.raw.layout import Layout

log = logging.getLogger(__name__)
MOST_AT_ONCE = 200
"""Files between two batches: some tenths of a second."""


class ExpiringFiles(Protocol):
    """What is asked of a pipeline's files; `number` tells apart what was let go more than once."""

    layout: Layout

    def is_aside(self, path: str, number: int) -> bool: ...
    def set_aside(self, path: str, number: int) -> None: ...
    def delete_aside(self, path: str, number: int) -> None: ...
    def parquet_files(self, compacted: Mapping[datetime, Compacted]) -> Mapping[datetime, str]: ...


def carry_out(connection: Connection, epoch: Epoch, files: ExpiringFiles) -> int:
    """As the pipeline's driver: move away some of what was let go, delete what was moved away a day ago. Returns how
    many files that were. Killed anywhere, it is done again by the next driver.

    Text for which a Parquet file stands in stays where it is, or aside, while that file is not there as it was noted.
    """
    going = expiries.list_files_to_move(connection, epoch.pipeline, MOST_AT_ONCE)
    alone = _find_sole_copies(connection, epoch.pipeline, files, going)
    for one in going:
        path = locate_file(files.layout, one)
        if not files.is_aside(path, one.expiry_id):  # else a driver died before it could note that
            if one.window_start in alone:
                log.warning("%s stays: its Parquet file is not there any more; compact it again", path)
                compactions.forget(connection, epoch.pipeline, one.window_start)
            if one.window_start in alone or expiries.is_touched(connection, epoch.pipeline, one):
                expiries.dropped(connection, epoch, one)
                continue
            drivers.beat(connection, epoch)
            files.set_aside(path, one.expiry_id)
        expiries.moved(connection, epoch, one.expiry_id)
    gone = 0
    aside = expiries.moved_a_day_ago(connection, epoch.pipeline, MOST_AT_ONCE)
    alone = _find_sole_copies(connection, epoch.pipeline, files, aside)
    for one in aside:
        path = locate_file(files.layout, one)
        if one.window_start in alone:
            log.warning(
                "%s is not deleted: the Parquet file of its window is not there; put that back, `onceover explain` "
                "says where", files.layout.aside(path, one.expiry_id),
            )  # fmt: skip
            continue
        drivers.beat(connection, epoch)
        files.delete_aside(path, one.expiry_id)
        expiries.deleted(connection, epoch, one.expiry_id)
        gone += 1
    return len(going) + gone


def _find_sole_copies(
    connection: Connection, pipeline: str, files: ExpiringFiles, texts: Sequence[Expiring]
) -> set[datetime]:
    """Windows whose text is all there is of them, for the Parquet file that is to stand in for it is not there. What
    expires is none of them."""
    starts = [one.window_start for one in texts if one.window_start is not None]
    needed = compactions.standing_in(connection, pipeline, starts)
    there = files.parquet_files({start: compacted for start, compacted in needed.items() if compacted})
    return needed.keys() - there.keys()


def refuse_expired(connection: Connection, pipeline: str, asked: WindowRange | None) -> None:
    """Raise UsageError for a range of which all raw is gone; of one that reaches back there, the rest can be judged."""
    if asked is not None and expiries.all_expired(connection, pipeline, asked.start, asked.end):
        raise UsageError(
            f"raw of {pipeline}'s windows from {written(asked.start)} to {written(asked.end)} has expired by the "
            "pipeline's retention: they cannot be repaired, their certificates are all there is"
        )


def locate_file(layout: Layout, one: Expiring) -> str:
    """Where the file lies, or lay."""
    if one.window_start is not None:
        return layout.window_file(one.window_start)
    if one.quarantine_day is None:
        raise ValueError(f"expiry {one.expiry_id} is of nothing")
    return layout.quarantine_file(one.quarantine_day)
