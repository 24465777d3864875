"""Restatements in the ledger."""

from __future__ import annotations

from typing import Final

from onceover.ledger.database import Connection
from onceover.model.restatement import Restatement

RESTATED: Final = """
  (SELECT max(s.contract_version) FROM onceover.restatement s WHERE s.pipeline = w.pipeline
    AND s.range_start <= w.window_start AND w.window_start < s.range_end)"""
"""The version of the contract that window w was restated under, NULL for none."""


def list_restatements(connection: Connection, pipeline: str) -> tuple[Restatement, ...]:
    """Return a pipeline's restatements by number."""
    rows = connection.execute(
        "SELECT number, range_start, range_end, contract_version, who, why, created_at FROM onceover.restatement "
        "WHERE pipeline = %s ORDER BY number",
        [pipeline],
    )
    return tuple(Restatement(*row.values()) for row in rows)


def lock_restatements(connection: Connection) -> None:
    """Keep other transactions from recording restatements until this one ends. No row of a pipeline or window is
    locked: ingest locks windows first."""
    connection.execute("LOCK TABLE onceover.restatement IN SHARE ROW EXCLUSIVE MODE")


def record_restatement(connection: Connection, pipeline: str, restated: Restatement) -> None:
    """Record a restatement and give its windows a new version, in one transaction: their certificates end, and no
    repair that has begun publishes them."""
    with connection.transaction():
        connection.execute(
            """
            INSERT INTO onceover.restatement (pipeline, number, range_start, range_end, contract_version, who, why,
              created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [pipeline, restated.number, restated.start, restated.end, restated.version, restated.who, restated.why,
             restated.created_at],
        )  # fmt: skip
        connection.execute(
            """
            WITH locked AS (SELECT window_start FROM onceover."window" WHERE pipeline = %(pipeline)s
              AND window_start >= %(start)s AND window_start < %(end)s AND expired_at IS NULL
              ORDER BY window_start FOR UPDATE)
            UPDATE onceover."window" w SET version = version + 1 FROM locked l
            WHERE w.pipeline = %(pipeline)s AND w.window_start = l.window_start
            """,
            {"pipeline": pipeline, "start": restated.start, "end": restated.end},
        )


def has_preview(connection: Connection, pipeline: str, token: str) -> bool:
    """Return whether a preview with that token found that all of its windows can be restated."""
    row = connection.execute(
        "SELECT FROM onceover.action WHERE pipeline = %s AND kind = 'audit restatement' "
        "AND detail -> 'result' ->> 'token' = %s LIMIT 1",
        [pipeline, token],
    ).fetchone()
    return row is not None
