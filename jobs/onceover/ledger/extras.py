"""Extras: records that count in a window though they have landed nowhere, as its certificate names them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.ledger.batches import list_in_flight
from onceover.ledger.database import Connection
from onceover.ledger.gap_sets import parse_ranges
from onceover.ledger.landed_offsets import read_accounted
from onceover.model.offsets import KafkaPartition, OffsetRange, intersect


def list_extras(connection: Connection, pipeline: str) -> dict[datetime, tuple[OffsetRange, ...]]:
    """Return the windows whose last certificate counts extras, with the IDs of these."""
    rows = connection.execute(
        """
        SELECT w.window_start, c.extras FROM onceover.certificate c
        JOIN onceover."window" w ON w.pipeline = c.pipeline AND w.window_start = c.window_start
          AND w.certificate_id = c.certificate_id
        WHERE c.pipeline = %s AND c.extras <> '[]' AND w.expired_at IS NULL ORDER BY 1
        """,
        [pipeline],
    )
    return {row["window_start"]: parse_ranges(row["extras"]) for row in rows}


def explain_wait(connection: Connection, pipeline: str, extras: Sequence[OffsetRange]) -> str | None:
    """Return why these extras cannot count now: one has landed, or a batch of a live driver may still land it. None if
    they can."""
    if landed := intersect(read_accounted(connection, pipeline), extras):
        return f"{landed[0]}, which had landed nowhere, has landed meanwhile; the window is judged again"
    if begun := intersect(_list_begun(connection, pipeline), extras):
        return f"a batch in flight may still land {begun[0]}; the next repair judges the window again"
    return None


def find_other_window(
    connection: Connection, pipeline: str, start: datetime, extras: Sequence[OffsetRange]
) -> tuple[datetime, OffsetRange] | None:
    """Return another window whose certificate counts one of these extras, with its offset."""
    for other, ranges in list_extras(connection, pipeline).items():
        if other != start and (both := intersect(ranges, extras)):
            return other, both[0]
    return None


def _list_begun(connection: Connection, pipeline: str) -> list[OffsetRange]:
    """Return the offsets of batches that may still land, in order."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range "
        "WHERE batch_id = ANY(%s) ORDER BY 1, 2, 3",
        [sorted(list_in_flight(connection, pipeline))],
    )
    return [
        OffsetRange(KafkaPartition(row["generation"], row["kafka_partition"]), row["start_offset"], row["end_offset"])
        for row in rows
    ]
