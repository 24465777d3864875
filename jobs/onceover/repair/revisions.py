"""Revisions: the rows that a repair replaced, and their restore as a new revision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.errors import BusyError, UsageError
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.columns import count_columns, read_count
from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import create_request
from onceover.model.dag_run import DagRun
from onceover.model.window import format_moment


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore: the rows of revision `source` are now `revision`. `records` is None if their count is
    unknown. `is_restated`: the window was restated since these rows were published, so they are of an older
    contract."""

    source: int
    revision: int
    rows: int
    records: int | None
    is_restated: bool = False


def restore_revision(
    connection: Connection,
    registered: RegisteredPipeline,
    window_start: datetime,
    source: int | None,
    who: str,
    why: str,
    dag_run: DagRun | None = None,
) -> RestoreResult:
    """Restore a kept revision's rows to the aggregates, in one transaction: without a `source`, those that the last
    repair replaced.

    The restored rows become a new revision, and the replaced ones are kept. Restored rows are not proved, so the window
    loses its certificate and is blocked, or a scheduled repair would undo the restore; a repair of its range by name
    lifts the block. Raises UsageError for an unknown revision, BusyError while a repair holds the window.
    """
    shown = f"window {format_moment(window_start)} of {registered.name}"
    with connection.transaction():
        window = connection.execute(
            'SELECT *, claimed_until >= clock_timestamp() AS claimed FROM onceover."window" '
            "WHERE pipeline = %s AND window_start = %s FOR UPDATE",
            [registered.name, window_start],
        ).fetchone()
        if window is None:
            raise UsageError(f"unknown {shown}: none of its records was ever read; check the time, which is UTC")
        if window["claimed"]:
            raise BusyError(f"{shown} is claimed by {window['claimed_by']}; retry when that repair has ended")
        if window["expired_at"]:
            raise UsageError(f"raw of {shown} has expired: it cannot be repaired after a restore, so none is made")
        kept = connection.execute(
            """
            SELECT replaced_revision AS revision, before, state FROM onceover.repair
            WHERE pipeline = %s AND window_start = %s AND replaced_revision IS NOT NULL ORDER BY 1
            """,
            [registered.name, window_start],
        ).fetchall()
        # The default leaves out rows that a restore replaced: a second run would undo the first.
        chosen = [r for r in kept if (r["state"] != "restored" if source is None else r["revision"] == source)]
        if not chosen:
            available = ", ".join(str(row["revision"]) for row in kept) or "none"
            raise UsageError(
                f"{shown} has no kept revision{'' if source is None else f' {source}'}; available: {available}"
            )
        old, current = chosen[-1], int(window["revision"])
        control = count_columns(read_count(old["before"]["control"]))
        before = {"control": count_columns(read_count(window)), "revision": current}
        after = {"control": control, "revision": current + 1, "restored": old["revision"]}
        request_id = create_request(connection, registered.name, who, why, {}, dag_run=dag_run)
        connection.execute(
            """
            INSERT INTO onceover.repair (request_id, pipeline, window_start, state, findings, started_at, finished_at,
              before, after)
            VALUES (%s, %s, %s, 'restored', '[]', clock_timestamp(), clock_timestamp(), %s, %s)
            """,
            [request_id, registered.name, window_start, Jsonb(before), Jsonb(after)],
        )
        restated = connection.execute(
            """
            SELECT FROM onceover.restatement WHERE pipeline = %(pipeline)s AND range_start <= %(start)s
              AND %(start)s < range_end AND created_at > coalesce((
                SELECT max(finished_at) FROM onceover.repair WHERE pipeline = %(pipeline)s
                  AND window_start = %(start)s AND (after ->> 'revision')::integer = %(source)s), '-infinity')
            """,
            {"pipeline": registered.name, "start": window_start, "source": old["revision"]},
        ).fetchone()
        registered.table.keep(connection, window_start, current)
        rows = registered.table.restore(connection, window_start, old["revision"], current + 1)
        connection.execute(
            """
            UPDATE onceover."window" SET revision = %(revision)s, version = version + 1, blocked_at = clock_timestamp(),
              blocked_why = %(blocked)s, records = %(records)s, high1 = %(high1)s, low1 = %(low1)s,
              high2 = %(high2)s, low2 = %(low2)s
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s
            """,
            {
                "revision": current + 1,
                "blocked": f"restored to revision {old['revision']} by {who}: {why}",
                "pipeline": registered.name,
                "start": window_start,
                **control,
            },
        )
    return RestoreResult(old["revision"], current + 1, rows, control["records"], restated is not None)
