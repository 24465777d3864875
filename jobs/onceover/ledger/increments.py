"""Increments, step 4 of a batch: its rows are added to aggregates and control rows in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from onceover.errors import TransientError
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.columns import digest_arrays
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.windows import lock_windows
from onceover.model.batch import Increment


def stage_name(batch_id: int) -> str:
    """Return the name of the stage that holds a batch's rows."""
    return f"batch:{batch_id}"


def increment(
    connection: Connection,
    epoch: Epoch,
    table: AggregateTable,
    batch_id: int,
    increments: Sequence[Increment],
    staged: int,
) -> None:
    """Add the batch's `staged` rows, its count and digest to each window it touches, and bump the windows' versions.
    Raise TransientError if rows are missing in the stage: a server that crashed empties it.

    A replayed batch adds its rows again: the aggregates are at-least-once, and the control row says what they count.
    """
    ordered = sorted(increments, key=lambda i: i.window_start)
    with connection.transaction():
        require_epoch(connection, epoch)
        insert_windows(connection, epoch.pipeline, table, {i.window_start: i.window_end for i in ordered})
        lock_windows(connection, epoch.pipeline, [i.window_start for i in ordered])
        added = table.increment(connection, stage_name(batch_id))
        if added != staged:
            raise TransientError(
                f"{added} of the {staged} rows that were staged for batch {batch_id} of {epoch.pipeline} are left: "
                "PostgreSQL restarted, or another server answers; the batch is read again"
            )
        connection.execute(
            """
            UPDATE onceover."window" w SET records = w.records + g.records, high1 = w.high1 + g.high1,
              low1 = w.low1 + g.low1, high2 = w.high2 + g.high2, low2 = w.low2 + g.low2, version = w.version + 1
            FROM unnest(%s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
              AS g (start, records, high1, low1, high2, low2)
            WHERE w.pipeline = %s AND w.window_start = g.start
            """,
            [[i.window_start for i in ordered], *digest_arrays([i.digest for i in ordered]), epoch.pipeline],
        )
        table.unstage(connection, stage_name(batch_id))


def insert_windows(
    connection: Connection, pipeline: str, table: AggregateTable, ends: Mapping[datetime, datetime]
) -> None:
    """Record windows, by start and end, into which nothing has landed. Windows that the ledger has are left alone.

    The count of a new window that has rows, of before the ledger was lost, is unknown, and stays so after every
    increment: the window is rebuilt from raw.
    """
    if not ends:
        return
    with connection.transaction():
        fresh = connection.execute(
            """
            INSERT INTO onceover."window" (pipeline, window_start, window_end, day)
            SELECT %s, given.*
            FROM unnest(%s::timestamptz[], %s::timestamptz[], %s::date[]) AS given (start, "end", day)
            ORDER BY start ON CONFLICT DO NOTHING RETURNING window_start
            """,
            [pipeline, list(ends), list(ends.values()), list(map(table.windowing.local_day, ends))],
        ).fetchall()
        if filled := table.find_filled(connection, [row["window_start"] for row in fresh]):
            connection.execute(
                'UPDATE onceover."window" SET records = NULL, high1 = NULL, low1 = NULL, high2 = NULL, low2 = NULL '
                "WHERE pipeline = %s AND window_start = ANY(%s)",
                [pipeline, filled],
            )
