"""Days of quarantine whose files the ledger does not explain, and the searches of them for orphans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from onceover.ledger.database import Connection


def list_searchable_days(connection: Connection, pipeline: str, lengths: Mapping[date, int]) -> list[date]:
    """Return the days of quarantine whose files the ledger does not explain, and that may hold orphans: not searched at
    that length, or with records that Kafka may no longer hold. `lengths` are those of all files."""
    searched = {
        row["quarantine_day"]: (row["bytes"], row["pending"])
        for row in connection.execute("SELECT * FROM onceover.quarantine_search WHERE pipeline = %s", [pipeline])
    }
    return [
        day for day in list_unexplained_days(connection, pipeline, lengths) if searched.get(day) != (lengths[day], 0)
    ]


def list_unexplained_days(connection: Connection, pipeline: str, lengths: Mapping[date, int]) -> list[date]:
    """Return the days of quarantine whose files, of these lengths, have more or fewer bytes than landed, or an append
    that was not proved, in order."""
    rows = connection.execute(
        "SELECT quarantine_day, sum(byte_end - byte_start) AS bytes, bool_and(proved) AS proved FROM onceover.landing "
        "WHERE pipeline = %s AND quarantine_day IS NOT NULL GROUP BY 1",
        [pipeline],
    )
    landed = {row["quarantine_day"]: row["bytes"] for row in rows if row["proved"]}
    return sorted(day for day, length in lengths.items() if length != landed.get(day, 0))


def record_search(connection: Connection, pipeline: str, day: date, length: int, pending: int) -> None:
    """Record that a day's quarantine file was searched at this length, and that `pending` records wait in it."""
    connection.execute(
        """
        INSERT INTO onceover.quarantine_search (pipeline, quarantine_day, bytes, pending) VALUES (%s, %s, %s, %s)
        ON CONFLICT (pipeline, quarantine_day) DO UPDATE SET bytes = excluded.bytes, pending = excluded.pending,
          searched_at = clock_timestamp()
        """,
        [pipeline, day, length, pending],
    )
