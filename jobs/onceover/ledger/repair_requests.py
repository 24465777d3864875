"""Repair requests: windows, who wants them repaired, and why; how far each is, its cancellation, and the one that a
killed repair has left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_findings
from onceover.ledger.windows import STATE, cut_into_chunks, lock_windows
from onceover.model.dag_run import DagRun
from onceover.model.finding import Finding
from onceover.model.window import WindowRange

EAGER, EAGER_WHY = "ingest", "eager repair"
"""Requester and reason of ingest's own repairs, which name neither a run nor a range."""

# Of repair r and its window w: whether a repair that lives works on it.
_IS_HELD = """
  (r.state = 'claimed' AND w.token = r.token AND coalesce(w.claimed_until >= clock_timestamp(), false))"""
# Of repair r of request q, its window w and that one's certificate c: another repair may have been faster.
_WAITS = """
  (r.state IN ('planned', 'claimed') AND NOT coalesce(c.version = w.version AND c.created_at > q.created_at, false))"""
_UNFINISHED = """
  q.request_id IN (SELECT r.request_id FROM onceover.repair r
    WHERE r.pipeline = %(pipeline)s AND r.state IN ('planned', 'claimed'))"""

_LIST = f"""
SELECT * FROM (SELECT q.request_id, CASE WHEN counts.held > 0 THEN 'running' WHEN counts.waiting > 0 THEN 'waiting'
    WHEN q.cancelled_at IS NOT NULL THEN 'cancelled' ELSE 'ended' END AS state,
  q.who, q.why, q.created_at, q.dag_id, q.run_id, q.range_start, q.range_end, q.forced, q.cancelled_at, q.cancelled_by,
  q.cancelled_why, counts.*
FROM (SELECT * FROM onceover.repair_request q WHERE pipeline = %(pipeline)s AND (%(every)s OR {_UNFINISHED})
    AND (%(only)s::bigint IS NULL OR request_id = %(only)s)
  ORDER BY request_id DESC LIMIT 1000) q
CROSS JOIN LATERAL (
  SELECT count(*) AS windows, count(*) FILTER (WHERE {_WAITS}) AS waiting,
    count(*) FILTER (WHERE {_IS_HELD}) AS held,
    count(*) FILTER (WHERE r.state IN ('published', 'confirmed')) AS repaired,
    count(*) FILTER (WHERE r.state IN ('failed', 'revoked')) AS failed
  FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
  LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
  WHERE r.request_id = q.request_id) counts) requests
WHERE %(every)s OR waiting > 0 ORDER BY request_id
"""

_REQUEST = "SELECT request_id, pipeline, who, why, created_at, dag_id, run_id FROM onceover.repair_request"

_WINDOWS = f"""
SELECT r.window_start AS start, w.window_end AS "end", r.state, r.reason, r.finished_at, r.blocked,
  (r.before #>> '{{control,records}}')::bigint AS before, (r.after #>> '{{control,records}}')::bigint AS after,
  {STATE} AS window_state
FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE r.request_id = %s
ORDER BY CASE WHEN r.state IN ('failed', 'revoked') THEN 0 WHEN r.state IN ('planned', 'claimed', 'published') THEN 1
  ELSE 2 END, r.window_start LIMIT %s
"""

_COUNTS = f"""
SELECT r.state, {STATE} = 'certified' AS is_certified, count(*) AS n
FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE r.request_id = %s GROUP BY 1, 2
"""


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
    request_id = continued
    if request_id is None:
        run = (dag_run.dag_id, dag_run.run_id) if dag_run else (None, None)
        bounds = (window_range.start, window_range.end) if window_range else (None, None)
        (row,) = connection.execute(
            "INSERT INTO onceover.repair_request (pipeline, who, why, dag_id, run_id, range_start, range_end, forced) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING request_id",
            [pipeline, who, why, *run, *bounds, forced],
        ).fetchall()
        request_id = int(row["request_id"])
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


def list_requests(
    connection: Connection, pipeline: str, *, every: bool = False, only: int | None = None
) -> list[Mapping[str, Any]]:
    """Return the requests with windows that still wait, or `every` request, or `only` one; the last
    1,000 of them, in order.

    Each has a state: `running` (a repair holds some of its windows), `waiting`, `cancelled` or `ended`; and counts of
    its windows: all, `waiting` for a repair, `held` among these, `repaired`, and `failed`."""
    return list(connection.execute(_LIST, {"pipeline": pipeline, "every": every or only is not None, "only": only}))


def find_queued(
    connection: Connection, pipeline: str, dag_run: DagRun, still_runs: Callable[[DagRun], bool]
) -> int | None:
    """Return the first request of another run of the same DAG that has windows which wait for a repair, if that run
    `still_runs`."""
    rows = connection.execute(
        "SELECT request_id, run_id FROM onceover.repair_request q WHERE pipeline = %(pipeline)s "
        f"AND dag_id = %(dag)s AND run_id IS NOT NULL AND {_UNFINISHED} ORDER BY request_id",
        {"pipeline": pipeline, "dag": dag_run.dag_id},
    )
    others = ((row["request_id"], DagRun(dag_run.dag_id, row["run_id"])) for row in rows)
    return next((number for number, run in others if run != dag_run and still_runs(run)), None)


def cancel_request(connection: Connection, pipeline: str, request_id: int, who: str, why: str) -> int:
    """Cancel the windows of a request that no repair works on, and return their number. Those that a repair holds now
    are finished: the rest of the request is never claimed. Raises UsageError for an unknown request.

    A cancelled request stays cancelled: the first person's reason is kept. Offsets that are to be read again stay in
    the queue of the pipeline's driver, and windows that are wrong are requested again by the schedule."""
    row = connection.execute(
        "UPDATE onceover.repair_request SET cancelled_at = coalesce(cancelled_at, clock_timestamp()), "
        "cancelled_by = coalesce(cancelled_by, %s), cancelled_why = coalesce(cancelled_why, %s) "
        "WHERE request_id = %s AND pipeline = %s RETURNING cancelled_by, cancelled_why",
        [who, why, request_id, pipeline],
    ).fetchone()
    if row is None:
        raise UsageError(
            f"pipeline {pipeline} has no repair request {request_id}; list them with `onceover requests {pipeline}`"
        )
    waiting = connection.execute(
        "SELECT window_start FROM onceover.repair WHERE request_id = %s AND state IN ('planned', 'claimed')",
        [request_id],
    )
    cancelled = 0
    for chunk in cut_into_chunks(each["window_start"] for each in waiting):
        with connection.transaction():
            lock_windows(connection, pipeline, chunk)
            cancelled += connection.execute(
                f"""
                UPDATE onceover.repair r SET state = 'cancelled', finished_at = clock_timestamp(), reason = %s
                FROM onceover."window" w WHERE r.request_id = %s AND r.window_start = ANY(%s)
                  AND r.state IN ('planned', 'claimed') AND w.pipeline = r.pipeline
                  AND w.window_start = r.window_start AND NOT {_IS_HELD}
                """,
                [f"cancelled by {row['cancelled_by']}: {row['cancelled_why']}", request_id, chunk],
            ).rowcount
    return cancelled


def find_killed(
    connection: Connection, pipeline: str, who: str, why: str, window_range: WindowRange
) -> tuple[int, frozenset[datetime]] | None:
    """Return this person's last forced request of the same range and reason, with the windows that it has repaired, if
    its repair was killed before the end; None otherwise."""
    row = connection.execute(
        """
        SELECT q.request_id FROM onceover.repair_request q
        WHERE q.pipeline = %s AND q.who = %s AND q.why = %s AND q.range_start = %s AND q.range_end = %s AND q.forced
          AND q.cancelled_at IS NULL AND EXISTS (SELECT FROM onceover.repair r WHERE r.pipeline = q.pipeline
            AND r.request_id = q.request_id AND r.state IN ('planned', 'claimed'))
        ORDER BY q.request_id DESC LIMIT 1
        """,
        [pipeline, who, why, window_range.start, window_range.end],
    ).fetchone()
    if row is None:
        return None
    repaired = connection.execute(
        """
        SELECT r.window_start FROM onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
        JOIN onceover."window" w ON w.certificate_id = c.certificate_id AND w.version = c.version
        WHERE r.request_id = %s AND r.state IN ('published', 'confirmed')
        """,
        [row["request_id"]],
    )
    return row["request_id"], frozenset(each["window_start"] for each in repaired)


def find_run_requests(connection: Connection, dag_id: str, run_id: str) -> list[Mapping[str, Any]]:
    """Return the repair requests that a run of Airflow made, one a pipeline and try, the newest last."""
    return list(
        connection.execute(f"{_REQUEST} WHERE dag_id = %s AND run_id = %s ORDER BY request_id", [dag_id, run_id])
    )


def find_request(connection: Connection, request_id: int) -> Mapping[str, Any] | None:
    """Return a repair request, None for an unknown number."""
    return connection.execute(f"{_REQUEST} WHERE request_id = %s", [request_id]).fetchone()


def list_requested_windows(connection: Connection, request_id: int, limit: int) -> list[Mapping[str, Any]]:
    """Return the request's windows: failed ones first, then those that wait, then the rest."""
    return list(connection.execute(_WINDOWS, [request_id, limit]))


def count_requested_windows(connection: Connection, request_id: int) -> list[Mapping[str, Any]]:
    """Count the request's windows by their repair's `state` and by whether they are certified now."""
    return list(connection.execute(_COUNTS, [request_id]))
