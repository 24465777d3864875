"""Repair requests: windows, who wants them repaired, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_findings
from onceover.ledger.windows import cut_into_chunks, lock_windows
from onceover.model.dag_run import DagRun
from onceover.model.finding import Finding
from onceover.model.window import WindowRange

EAGER, EAGER_WHY = "ingest", "eager repair"
"""Requester and reason of ingest's own repairs, which name neither a run nor a range."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """A request to repair these windows, with its author and reason."""

    request_id: int
    pipeline: str
    who: str
    why: str
    window_starts: tuple[datetime, ...]
    created_at: datetime
    run: str  # differs per process: a request may be run again before an earlier run has died

    @property
    def stage(self) -> str:
        """The stage of this run's rows, and of no other run's."""
        return f"request:{self.request_id}:{self.run}"

    @property
    def owner(self) -> str:
        """The owner of the claims; a later run of the same request may take them over."""
        return f"request:{self.request_id}"


def create_request(
    connection: Connection,
    pipeline: str,
    who: str,
    why: str,
    windows: Mapping[datetime, Sequence[Finding]],
    *,
    unblock: bool = False,
    by_value: bool = False,
    dag_run: DagRun | None = None,
    window_range: WindowRange | None = None,
    forced: bool = False,
    continued: int | None = None,
) -> int:
    """Record a repair request with its windows and their findings, the run that makes it (None: a person's command),
    and the range that was requested; or `continued`, a request whose repair was killed. This repair and all later ones
    rebuild the windows `by_value`. Returns its ID.

    Each chunk of windows is a transaction of its own, so that ingest never waits long for a window. A request that is
    killed halfway is never run, and the next detection requests its windows again.
    """
    request_id = continued or _insert(connection, pipeline, who, why, dag_run, window_range, forced)
    for chunk in cut_into_chunks(windows):
        with connection.transaction():
            lock_windows(connection, pipeline, chunk)
            connection.cursor().executemany(
                "INSERT INTO onceover.repair (request_id, pipeline, window_start, findings) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (request_id, window_start) DO UPDATE SET state = 'planned', findings = excluded.findings "
                # Its row says which revision it replaced; a later request repairs the window again.
                "WHERE onceover.repair.replaced_revision IS NULL",
                [(request_id, pipeline, start, Jsonb(windows[start])) for start in chunk],
            )
            record_findings(connection, pipeline, {start: windows[start] for start in chunk})
            if by_value:
                connection.execute(
                    'UPDATE onceover."window" SET by_value = true WHERE pipeline = %s AND window_start = ANY(%s)',
                    [pipeline, chunk],
                )
            if unblock:
                connection.execute(
                    'UPDATE onceover."window" SET tries = 0, blocked_at = NULL, blocked_why = NULL '
                    "WHERE pipeline = %s AND window_start = ANY(%s)",
                    [pipeline, chunk],
                )
    return request_id


def _insert(
    connection: Connection,
    pipeline: str,
    who: str,
    why: str,
    dag_run: DagRun | None,
    window_range: WindowRange | None,
    forced: bool,
) -> int:
    run = (dag_run.dag_id, dag_run.run_id) if dag_run else (None, None)
    bounds = (window_range.start, window_range.end) if window_range else (None, None)
    row = connection.execute(
        "INSERT INTO onceover.repair_request (pipeline, who, why, dag_id, run_id, range_start, range_end, forced) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING request_id",
        [pipeline, who, why, *run, *bounds, forced],
    ).fetchone()
    return int(row["request_id"]) if row else 0


def read_request(connection: Connection, pipeline: str, request_id: int) -> RepairRequest:
    """Return the request with the windows that still wait for a repair. Raises UsageError for an unknown request."""
    row = connection.execute(
        "SELECT who, why, created_at FROM onceover.repair_request WHERE request_id = %s AND pipeline = %s",
        [request_id, pipeline],
    ).fetchone()
    if row is None:
        raise UsageError(f"pipeline {pipeline} has no repair request {request_id}")
    # Landings are numbered as they land: the windows whose records leave Kafka's log first come first.
    starts = connection.execute(
        """
        SELECT r.window_start FROM onceover.repair r
        WHERE r.request_id = %s AND r.state IN ('planned', 'claimed')
        ORDER BY (SELECT min(l.landing_id) FROM onceover.landing l
          WHERE l.pipeline = r.pipeline AND l.window_start = r.window_start) NULLS LAST, r.window_start
        """,
        [request_id],
    )
    return RepairRequest(
        request_id,
        pipeline,
        row["who"],
        row["why"],
        tuple(r["window_start"] for r in starts),
        row["created_at"],
        uuid4().hex,
    )
