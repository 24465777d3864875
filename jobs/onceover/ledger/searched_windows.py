"""Window files that a repair has read for records that no landing accounts for."""

from __future__ import annotations

from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.ledger.database import Connection
from onceover.model.finding import Finding


def was_read_for_orphans(connection: Connection, pipeline: str, start: datetime, finding: Finding) -> bool:
    """Return whether a repair for exactly this finding has read the open window, and left no orphan. A decision about
    one of its records since makes that unknown."""
    row = connection.execute(
        """
        SELECT 1 FROM onceover.repair r WHERE r.pipeline = %s AND r.window_start = %s AND r.state = 'unneeded'
          AND r.started_at IS NOT NULL AND r.findings @> %s AND NOT EXISTS (
            SELECT FROM onceover.decision d WHERE d.pipeline = r.pipeline AND d.window_start = r.window_start
              AND d.created_at >= r.started_at) LIMIT 1
        """,
        [pipeline, start, Jsonb([finding])],
    ).fetchone()
    return row is not None


def was_searched(connection: Connection, pipeline: str, start: datetime, length: int) -> bool:
    """Return whether a repair has searched the window's file at this length, and every intact line in it has landed or
    belongs elsewhere."""
    row = connection.execute(
        "SELECT 1 FROM onceover.repair WHERE pipeline = %s AND window_start = %s AND state = 'unneeded' "
        "AND bytes_read = %s LIMIT 1",
        [pipeline, start, length],
    ).fetchone()
    return row is not None
