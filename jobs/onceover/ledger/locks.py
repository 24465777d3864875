"""The order in which windows are locked: every writer of several takes them first and ascending, so that none waits in
a circle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.ledger.database import Connection


def lock_windows(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> None:
    """Inside a transaction: hold these windows' rows until it ends."""
    connection.execute(
        """
        SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)
        ORDER BY window_start FOR UPDATE
        """,
        [pipeline, list(starts)],
    )
