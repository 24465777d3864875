"""Step 4 of a batch: add its rows to the aggregates and to the control rows, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.aggregates import AggregateTable
from onceover.batch import Increment
from onceover.ledger.database import Connection
from onceover.ledger.digests import digest_columns
from onceover.ledger.drivers import Epoch, require_current
from onceover.ledger.locks import lock_windows


def stage_name(batch_id: int) -> str:
    """The stage that holds a batch's rows."""
    return f"batch:{batch_id}"


def increment(
    connection: Connection, epoch: Epoch, table: AggregateTable, batch_id: int, increments: Sequence[Increment]
) -> None:
    """Add the batch's staged rows, its count and digest to each window it touches, and bump the windows' versions.

    A replayed batch adds again: the aggregates are at-least-once, and the control row says how much they count.
    """
    ordered = sorted(increments, key=lambda i: i.window_start)
    with connection.transaction():
        require_current(connection, epoch)
        cursor = connection.cursor()
        cursor.executemany(
            """
            INSERT INTO onceover."window" (pipeline, window_start, window_end) VALUES (%s, %s, %s)
            ON CONFLICT DO NOTHING
            """,
            [(epoch.pipeline, i.window_start, i.window_end) for i in ordered],
        )
        lock_windows(connection, epoch.pipeline, [i.window_start for i in ordered])
        table.increment(connection, stage_name(batch_id))
        cursor.executemany(
            """
            UPDATE onceover."window" SET version = version + 1, records = records + %(records)s,
              high1 = high1 + %(high1)s, low1 = low1 + %(low1)s, high2 = high2 + %(high2)s, low2 = low2 + %(low2)s
            WHERE pipeline = %(pipeline)s AND window_start = %(window_start)s
            """,
            [{"pipeline": epoch.pipeline, "window_start": i.window_start, **digest_columns(i.digest)} for i in ordered],
        )
        table.unstage(connection, stage_name(batch_id))
