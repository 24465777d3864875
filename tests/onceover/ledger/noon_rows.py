"""Rows of one window, noon, on a real ledger: counted twice, repaired, and restored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.claims import claim
from onceover.ledger.database import Connection
from onceover.ledger.increments import insert_windows
from onceover.ledger.repair_requests import create_request, read_request
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.repair.publish import publish

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BATCH = "batch:1"


def insert_noon(connection: Connection, registered: RegisteredPipeline) -> None:
    ends = {NOON: registered.windowing.window_at(NOON).end}
    insert_windows(connection, registered.name, registered.table, ends)


def count_twice(connection: Connection, registered: RegisteredPipeline, row: Sequence[str]) -> None:
    """Stage the row, keys first, as BATCH, and add it twice."""
    table = registered.table
    insert_noon(connection, registered)
    _stage(connection, registered, BATCH, row)
    table.increment(connection, BATCH)
    table.increment(connection, BATCH)


def repair(connection: Connection, registered: RegisteredPipeline, row: Sequence[str]) -> int:
    """Publish the row as a repair that rebuilt the window from raw; return the repair's number."""
    request_id = create_request(connection, registered.name, "test", "a test", {NOON: []}, unblock=True)
    request = read_request(connection, registered.name, request_id)
    (claimed,), _ = claim(connection, request)
    _stage(connection, registered, request.stage, row)
    held = RebuiltRange(OffsetRange(KafkaPartition("0a1b2c3d", 0), 0, 1), Digest(1, 1, 2, 3, 4))
    rebuilt = RebuiltWindow(held.digest, 1, 90, (held,))
    assert publish(connection, registered, request, claimed, rebuilt)
    return claimed.repair_id


def _stage(connection: Connection, registered: RegisteredPipeline, stage: str, row: Sequence[str]) -> None:
    assert registered.table.stage(connection, stage, ["\t".join((f"{NOON:%Y-%m-%d %H:%M:%S+00}", *row))]) == 1
