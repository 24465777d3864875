"""Raw goes when it is older than its pipeline keeps it: listed first, let go in the ledger, moved away by the driver,
and deleted a day later. What is gone is `expired`: its certificate stays, detection is silent, a repair is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onceover.errors import UsageError
from onceover.ledger import drivers, expiries
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.expiries import Expiring
from onceover.window import WindowRange, written
from onceover.window_files import Layout

MOST_AT_ONCE = 200
"""Files between two batches: some tenths of a second."""


class Files(Protocol):
    """What is asked of a pipeline's files; `number` tells apart what was let go more than once."""

    layout: Layout

    def is_aside(self, path: str, number: int) -> bool: ...
    def set_aside(self, path: str, number: int) -> None: ...
    def delete_aside(self, path: str, number: int) -> None: ...


def carry_out(connection: Connection, epoch: Epoch, files: Files) -> int:
    """As the pipeline's driver: move away some of what was let go, delete what was moved away a day ago. Returns how
    many files that were. Killed anywhere, it is done again by the next driver."""
    going = expiries.wanted(connection, epoch.pipeline, MOST_AT_ONCE)
    for one in going:
        path = path_of(files.layout, one)
        if not files.is_aside(path, one.expiry_id):  # else a driver died before it could note that
            if expiries.is_touched(connection, epoch.pipeline, one):
                expiries.dropped(connection, epoch, one)
                continue
            drivers.beat(connection, epoch)
            files.set_aside(path, one.expiry_id)
        expiries.moved(connection, epoch, one.expiry_id)
    gone = expiries.moved_a_day_ago(connection, epoch.pipeline, MOST_AT_ONCE)
    for one in gone:
        drivers.beat(connection, epoch)
        files.delete_aside(path_of(files.layout, one), one.expiry_id)
        expiries.deleted(connection, epoch, one.expiry_id)
    return len(going) + len(gone)


def refuse_expired(connection: Connection, pipeline: str, asked: WindowRange | None) -> None:
    """Raise UsageError for a range of which all raw is gone; of one that reaches back there, the rest can be judged."""
    if asked is not None and expiries.all_expired(connection, pipeline, asked.start, asked.end):
        raise UsageError(
            f"raw of {pipeline}'s windows from {written(asked.start)} to {written(asked.end)} has expired by the "
            "pipeline's retention: they cannot be repaired, their certificates are all there is"
        )


def path_of(layout: Layout, one: Expiring) -> str:
    """Where the file lies, or lay."""
    if one.window_start is not None:
        return layout.window_file(one.window_start)
    if one.quarantine_day is None:
        raise ValueError(f"expiry {one.expiry_id} is of nothing")
    return layout.quarantine_file(one.quarantine_day)


def totals(files: Sequence[Expiring]) -> dict[str, int]:
    """How many windows, days of quarantine, bytes and records these are."""
    return {
        "windows": sum(one.window_start is not None for one in files),
        "quarantine_days": sum(one.quarantine_day is not None for one in files),
        "bytes": sum(one.bytes for one in files),
        "records": sum(one.records for one in files),
    }
