"""Windows in the ledger: their locking order, which avoids deadlocks, and the count of open ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.ledger.database import Connection


def lock_windows(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> None:
    """Lock these windows' rows until the open transaction ends."""
    connection.execute(
        """
        SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)
        ORDER BY window_start FOR UPDATE
        """,
        [pipeline, list(starts)],
    )


def count_open_windows(connection: Connection, pipeline: str) -> int:
    """Count the registered windows that the watermark has not closed."""
    row = connection.execute(
        """
        SELECT count(*) AS open FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
        WHERE w.pipeline = %s AND NOT (p.every_window_closed OR coalesce(w.window_end <= p.watermark, false))
        """,
        [pipeline],
    ).fetchone()
    return int(row["open"]) if row else 0
