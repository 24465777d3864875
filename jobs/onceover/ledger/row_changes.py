"""The rows of a window that a stage would change, with the measures that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import sql

from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.database import Connection

_NOT_COMPARED = ["_stage", "window_start", "window_end", "revision"]


def match_keys(keys: Sequence[str]) -> sql.Composable:
    """Return the condition that rows `old.r` and `new.r`, as JSON, are of one combination of keys."""
    same = [sql.SQL("old.r -> {0} = new.r -> {0}").format(sql.Literal(name)) for name in keys]
    return sql.SQL(" AND ").join(same) if same else sql.SQL("true")


def list_staged_changes(
    connection: Connection, table: AggregateTable, stage: str, window_start: datetime, limit: int
) -> list[Mapping[str, Any]]:
    """Return the first rows that differ between the table and the stage: their `key`, and the measures that differ as
    they are `now` and `then`, None where there is no such row."""
    keys, shown = [column.name for column in table.columns.keys], table.columns.shown
    rows = connection.execute(
        sql.SQL(
            """
            WITH old AS (SELECT to_jsonb(_row) - %(names)s::text[] AS r FROM {table} AS _row
                WHERE window_start = %(start)s),
              new AS (SELECT to_jsonb(_row) - %(names)s::text[] AS r FROM {staging} AS _row
                WHERE _stage = %(stage)s AND window_start = %(start)s)
            SELECT old.r AS now, new.r AS then FROM old FULL JOIN new ON {joined} WHERE old.r IS DISTINCT FROM new.r
            ORDER BY coalesce(old.r, new.r)::text LIMIT %(limit)s
            """
        ).format(table=table.table, staging=table.staging, joined=match_keys(keys)),
        {"names": _NOT_COMPARED, "start": window_start, "stage": stage, "limit": limit},
    ).fetchall()
    changes: list[Mapping[str, Any]] = []
    for row in rows:
        now, then = row["now"], row["then"]
        differing = [name for name in shown if now is None or then is None or now[name] != then[name]]
        sides = {side: each and {name: each[name] for name in differing} for side, each in row.items()}
        changes.append({"key": {name: (now or then)[name] for name in keys}, **sides})
    return changes
