"""The rows of a window that a stage would change, with the measures that differ."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import sql

from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.database import Connection

_NOT_COMPARED = ["_stage", "window_start", "window_end", "revision"]


def list_staged_changes(
    connection: Connection, table: AggregateTable, stage: str, window_start: datetime, limit: int
) -> list[Mapping[str, Any]]:
    """Return the first rows that differ between the table and the stage: their `key`, and the measures that differ as
    they are `now` and `then`, None where there is no such row."""
    keys, shown = [column.name for column in table.columns.keys], table.columns.shown
    joined = [sql.SQL("a.r -> {0} = b.r -> {0}").format(sql.Literal(name)) for name in keys]
    rows = connection.execute(
        sql.SQL(
            """
            WITH a AS (SELECT to_jsonb(t) - %(names)s::text[] AS r FROM {table} t WHERE window_start = %(start)s),
              b AS (SELECT to_jsonb(s) - %(names)s::text[] AS r FROM {staging} s
                WHERE _stage = %(stage)s AND window_start = %(start)s)
            SELECT a.r AS now, b.r AS then FROM a FULL JOIN b ON {joined} WHERE a.r IS DISTINCT FROM b.r
            ORDER BY coalesce(a.r, b.r)::text LIMIT %(limit)s
            """
        ).format(
            table=table.table,
            staging=table.staging,
            joined=sql.SQL(" AND ").join(joined) if joined else sql.SQL("true"),
        ),
        {"names": _NOT_COMPARED, "start": window_start, "stage": stage, "limit": limit},
    ).fetchall()
    changes: list[Mapping[str, Any]] = []
    for row in rows:
        now, then = row["now"], row["then"]
        differing = [name for name in shown if now is None or then is None or now[name] != then[name]]
        sides = {side: each and {name: each[name] for name in differing} for side, each in row.items()}
        changes.append({"key": {name: (now or then)[name] for name in keys}, **sides})
    return changes
