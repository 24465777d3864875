"""Rows of one window by key: as a repair found them, and as it, or a later one, left them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import sql

from onceover.errors import UsageError
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.model.window import format_moment

_NOT_COMPARED = ["window_start", "window_end", "revision"]


def list_row_changes(
    connection: Connection, registered: RegisteredPipeline, window_start: datetime, repair_id: int | None, limit: int
) -> Mapping[str, Any] | None:
    """Return `before` and `after`, the revisions that are compared (None: the rows of now), and the first `rows` whose
    measures differ, with their number `differing`: `key`, and the measures `before` and `after`, None where there was
    no such row. Without a repair, the last kept revision is compared with the rows of now. None if no repair replaced
    rows. Raises UsageError for a repair that kept no rows of the window."""
    kept = connection.execute(
        "SELECT replaced_revision AS revision, repair_id FROM onceover.repair "
        "WHERE pipeline = %s AND window_start = %s AND replaced_revision IS NOT NULL ORDER BY 1",
        [registered.name, window_start],
    ).fetchall()
    if repair_id is None and not kept:
        return None
    chosen = [row["revision"] for row in kept if repair_id is None or row["repair_id"] == repair_id]
    if not chosen:
        raise UsageError(
            f"repair {repair_id} replaced no rows of window {format_moment(window_start)} of {registered.name}"
        )
    keys = [column.name for column in registered.columns.keys]
    measures = [column.name for column in registered.columns.measures]
    before = chosen[-1]
    later = [row["revision"] for row in kept if row["revision"] > before]
    after = later[0] if later and repair_id is not None else None
    rows = connection.execute(
        sql.SQL(
            """
            WITH old AS ({old}), new AS ({new}), apart AS (
              SELECT old.r AS before, new.r AS after FROM old FULL JOIN new ON {joined}
              WHERE jsonb_strip_nulls(old.r - %(names)s::text[]) IS DISTINCT FROM
                jsonb_strip_nulls(new.r - %(names)s::text[]))
            SELECT before, after, count(*) OVER () AS differing FROM apart
            ORDER BY coalesce(before, after) #>> '{{}}' LIMIT %(limit)s
            """
        ).format(
            old=_select_kept("before"),
            new=_select_now(registered) if after is None else _select_kept("after"),
            joined=sql.SQL(" AND ").join(
                sql.SQL("old.r -> {0} = new.r -> {0}").format(sql.Literal(name)) for name in keys
            )
            if keys
            else sql.SQL("true"),
        ),
        {
            "pipeline": registered.name, "start": window_start, "before": before, "after": after,
            "names": _NOT_COMPARED, "limit": limit,
        },
    ).fetchall()  # fmt: skip
    return {
        "before": before,
        "after": after,
        "rows": [
            {
                "key": {name: (row["before"] or row["after"])[name] for name in keys},
                **{
                    side: row[side] and {name: row[side].get(name) for name in measures} for side in ("before", "after")
                },
            }
            for row in rows
        ],
        "differing": rows[0]["differing"] if rows else 0,
    }


def _select_kept(revision: str) -> sql.Composed:
    return sql.SQL(
        "SELECT aggregates::jsonb AS r FROM onceover.revision_row "
        "WHERE pipeline = %(pipeline)s AND window_start = %(start)s AND revision = {}"
    ).format(sql.Placeholder(revision))


def _select_now(registered: RegisteredPipeline) -> sql.Composed:
    return sql.SQL("SELECT to_jsonb(_row) AS r FROM {} AS _row WHERE window_start = %(start)s").format(
        registered.table.table
    )
