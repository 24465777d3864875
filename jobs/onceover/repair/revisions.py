"""Revisions: the rows that a repair replaced, and putting them back as a new revision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.errors import BusyError, UsageError
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import count_columns, read_count
from onceover.model.window import format_moment


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back: `source`'s rows now stand as `revision`. `records` is None where nobody knows how many they
    count."""

    source: int
    revision: int
    rows: int
    records: int | None


def restore_revision(
    connection: Connection, known: RegisteredPipeline, window_start: datetime, source: int | None, who: str, why: str
) -> Restored:
    """Put the rows of a kept revision back into the aggregates, in one transaction: without a `source` those that the
    last repair replaced.

    They become a new revision; those that stood there are kept. Nothing proves them, so the window is certified no
    longer, and it is blocked: a scheduled repair would undo what a person has decided. Repairing its range lifts that.
    Raises UsageError if there is no such revision, BusyError while a repair holds the window.
    """
    shown = f"window {format_moment(window_start)} of {known.name}"
    with connection.transaction():
        window = connection.execute(
            'SELECT *, claimed_until >= clock_timestamp() AS claimed FROM onceover."window" '
            "WHERE pipeline = %s AND window_start = %s FOR UPDATE",
            [known.name, window_start],
        ).fetchone()
        if window is None:
            raise UsageError(f"nothing is known of {shown}")
        if window["claimed"]:
            raise BusyError(f"{shown} is held by {window['claimed_by']}; try again when that repair has ended")
        if window["expired_at"]:
            raise UsageError(f"raw of {shown} has expired: after a restore nobody could repair it")
        kept = connection.execute(
            """
            SELECT v.revision, r.before, r.state FROM onceover.revision v JOIN onceover.repair r USING (repair_id)
            WHERE v.pipeline = %s AND v.window_start = %s ORDER BY v.revision
            """,
            [known.name, window_start],
        ).fetchall()
        # Without a choice: what the last repair replaced. What a restore replaced would undo it when it is run twice.
        chosen = [r for r in kept if (r["state"] != "restored" if source is None else r["revision"] == source)]
        if not chosen:
            there = ", ".join(str(row["revision"]) for row in kept) or "none"
            raise UsageError(
                f"{shown} has no kept revision{'' if source is None else f' {source}'}; there are: {there}"
            )
        old, current = chosen[-1], int(window["revision"])
        control = count_columns(read_count(old["before"]["control"]))
        before = {"control": count_columns(read_count(window)), "revision": current}
        after = {"control": control, "revision": current + 1, "restored": old["revision"]}
        repair_id = _note(connection, known.name, window_start, who, why, before, after)
        connection.execute(
            "INSERT INTO onceover.revision (pipeline, window_start, revision, repair_id) VALUES (%s, %s, %s, %s)",
            [known.name, window_start, current, repair_id],
        )
        known.table.keep(connection, window_start, current)
        rows = known.table.restore(connection, window_start, old["revision"], current + 1)
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
                "pipeline": known.name,
                "start": window_start,
                **control,
            },
        )
    return Restored(old["revision"], current + 1, rows, control["records"])


def _note(
    connection: Connection,
    pipeline: str,
    window_start: datetime,
    who: str,
    why: str,
    before: dict[str, object],
    after: dict[str, object],
) -> int:
    """The restoration among the window's repairs, with who and why; returns its repair's id."""
    row = connection.execute(
        """
        WITH asked AS (
          INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%s, %s, %s) RETURNING request_id)
        INSERT INTO onceover.repair (request_id, pipeline, window_start, state, findings, started_at, finished_at,
          before, after)
        SELECT request_id, %s, %s, 'restored', '[]', clock_timestamp(), clock_timestamp(), %s, %s FROM asked
        RETURNING repair_id
        """,
        [pipeline, who, why, pipeline, window_start, Jsonb(before), Jsonb(after)],
    ).fetchone()
    return int(row["repair_id"]) if row else 0
