"""The history of one window: its landings, findings, repairs, certificates and losses, and its rows before and after a
repair."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from psycopg import sql

from onceover.errors import UsageError
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import UNKNOWN_VERSION
from onceover.ledger.landings import count_skipped
from onceover.ledger.restatements import RESTATED, list_restatements
from onceover.ledger.row_changes import match_keys
from onceover.ledger.takings import list_takings
from onceover.ledger.windows import list_windows
from onceover.model.window import format_moment

_CERTIFIED = "l.pipeline = w.pipeline AND l.window_start = w.window_start AND l.landing_id <= c.last_landing"
_RESTS_ON = f"""
SELECT c.basis, c.records - c.by_value AS by_columns, c.by_value, c.extras,
  (SELECT coalesce(sum(a.end_offset - a.start_offset), 0)::bigint FROM onceover.accepted_loss a
    WHERE a.loss_id <@ c.losses) AS lost_offsets,
  ARRAY(SELECT DISTINCT greatest(b.contract_version, {RESTATED})
    FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
    WHERE {_CERTIFIED} ORDER BY 1) AS contract_versions,
  (SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_object('code', e.code_version,
      'spark', nullif(e.spark_version, %(unknown)s), 'zones', e.zone_data)), '[]')
    FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
    LEFT JOIN onceover.driver e ON e.pipeline = b.pipeline AND e.epoch = b.epoch
    WHERE {_CERTIFIED}) AS evaluated_by
FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
WHERE w.pipeline = %(pipeline)s AND w.window_start = %(start)s"""


def read_window_history(connection: Connection, pipeline: str, window_start: datetime) -> Mapping[str, object]:
    """Return all about one window: state, landings, findings, repairs, certificates, losses, newest last, the records
    that each measure skipped, and what the present certificate rests on (None without one). The `sink` of a landing is
    None if no sink counted it, for it was rebuilt."""
    key = {"pipeline": pipeline, "start": window_start, "unknown": UNKNOWN_VERSION}
    windows = list_windows(connection, pipeline, None, window_start, window_start + timedelta(microseconds=1))
    return {
        "window": windows[0] if windows else None,
        "taken": list_takings(connection, pipeline, window_start, window_start + timedelta(microseconds=1)),
        "landings": list(
            connection.execute(
                """
                SELECT l.landing_id, l.batch_id, b.epoch, l.byte_start, l.byte_end, l.records, l.late, l.proved,
                  b.landed_at, b.committed_at, b.batches,
                  (SELECT b.sink FROM onceover.driver e WHERE e.pipeline = b.pipeline AND e.epoch = b.epoch
                    AND e.spark_version <> %(unknown)s) AS sink, (
                    SELECT json_agg(json_build_array(r.generation, r.kafka_partition, r.start_offset, r.end_offset)
                      ORDER BY 1, 2)
                    FROM onceover.batch_range r WHERE r.batch_id = l.batch_id) AS offset_ranges,
                  CASE WHEN b.who IS NOT NULL THEN json_build_object('who', b.who, 'why', b.why) END AS released
                FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
                WHERE l.pipeline = %(pipeline)s AND l.window_start = %(start)s ORDER BY l.landing_id
                """,
                key,
            )
        ),
        "findings": list(
            connection.execute(
                """
                SELECT kind, evidence, first_seen_at, last_seen_at, resolved_at, resolution FROM onceover.finding
                WHERE pipeline = %(pipeline)s AND window_start = %(start)s ORDER BY finding_id
                """,
                key,
            )
        ),
        "repairs": list(
            connection.execute(
                """
                SELECT r.repair_id, r.request_id, r.state, r.reason, r.failures, r.started_at, r.finished_at,
                  r.lines_read, r.bytes_read, r.duplicates, r.before, r.after, q.who, q.why
                FROM onceover.repair r JOIN onceover.repair_request q USING (request_id)
                WHERE r.pipeline = %(pipeline)s AND r.window_start = %(start)s ORDER BY r.repair_id
                """,
                key,
            )
        ),
        "certificates": list(
            connection.execute(
                """
                SELECT certificate_id, version, basis, contract_version, code_version, landings,
                  frozen_length, records, high1, low1, high2, low2, aggregate_rows, who, why, created_at, revoked_at,
                  revoked_why, verdict,
                  (SELECT coalesce(jsonb_agg(jsonb_build_array(lower(r), upper(r) - 1)), '[]') FROM unnest(losses) r)
                    AS losses
                FROM onceover.certificate WHERE pipeline = %(pipeline)s AND window_start = %(start)s
                ORDER BY certificate_id
                """,
                key,
            )
        ),
        "rests_on": connection.execute(_RESTS_ON, key).fetchone(),
        "restatements": [
            {"contract_version": each.version, "who": each.who, "why": each.why, "created_at": each.created_at}
            for each in list_restatements(connection, pipeline)
            if each.covers(window_start)
        ],
        "skipped": count_skipped(connection, pipeline, window_start),
        "losses": list(
            connection.execute(
                """
                SELECT generation, kafka_partition, start_offset, end_offset, kind, who, why, created_at
                FROM onceover.accepted_loss WHERE pipeline = %(pipeline)s AND relanded_at IS NULL
                  AND first_window <= %(start)s AND end_window > %(start)s ORDER BY loss_id
                """,
                key,
            )
        ),
    }


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
    measures = registered.columns.shown
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
            joined=match_keys(keys),
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
