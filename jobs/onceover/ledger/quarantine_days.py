"""Days of quarantine whose files the ledger does not explain, and the searches of them for orphans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from psycopg.types.json import Jsonb

from onceover.ledger.database import Connection
from onceover.ledger.gap_sets import ranges_as_json
from onceover.model.offsets import KafkaPartition, OffsetRange


def list_searchable_days(
    connection: Connection, pipeline: str, lengths: Mapping[date, int]
) -> dict[date, Sequence[OffsetRange]]:
    """Return the days of quarantine whose files the ledger does not explain, and that may hold orphans: not searched at
    that length, or with records that Kafka may no longer hold. `lengths` are those of all files.

    With a day come the first offsets beyond the ends of logs, if its last search left only such lines: it is to be
    searched again once a log reaches one of them.
    """
    rows = connection.execute("SELECT * FROM onceover.quarantine_search WHERE pipeline = %s", [pipeline])
    searched = {row["quarantine_day"]: row for row in rows}
    searchable: dict[date, Sequence[OffsetRange]] = {}
    for day in list_unexplained_days(connection, pipeline, lengths):
        row = searched.get(day)
        if row is None or (row["bytes"], row["pending"]) != (lengths[day], 0):
            searchable[day] = ()
        elif row["beyond"]:
            searchable[day] = [OffsetRange(KafkaPartition(g, p), start, end) for g, p, start, end in row["beyond"]]
    return searchable


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


def record_search(
    connection: Connection, pipeline: str, day: date, length: int, pending: int, beyond: Iterable[OffsetRange] = ()
) -> None:
    """Record that a day's quarantine file was searched at this length, and that `pending` records wait in it for what
    Kafka holds. `beyond` are those that no log has reached; the first of each Kafka partition is kept."""
    first = {
        piece.source: OffsetRange(piece.source, piece.start, piece.start + 1) for piece in sorted(beyond, reverse=True)
    }
    connection.execute(
        """
        INSERT INTO onceover.quarantine_search (pipeline, quarantine_day, bytes, pending, beyond)
        VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (pipeline, quarantine_day) DO UPDATE SET bytes = excluded.bytes, pending = excluded.pending,
          beyond = excluded.beyond, searched_at = clock_timestamp()
        """,
        [pipeline, day, length, pending, Jsonb(ranges_as_json(sorted(first.values())))],
    )
