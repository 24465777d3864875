"""What the page reads of the ledger: states as letters, ranges of trouble, runs, in a second for years of windows.

Each function is one statement, or a few; `read_consistently` makes them one snapshot that may not last long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.drivers import STATE_OF_DRIVER
from onceover.ledger.windows import LOG_UNTIL, STATE, UNSETTLED, WITH_TAKING, WindowState

SNAPSHOT_SECONDS: Final = 3
"""Limit of one statement: a reader has gone away by then, and the page must never slow ingest."""

LETTERS: Final[Mapping[str, str]] = {
    str(state): str(state)[0] for state in WindowState if state is not WindowState.CERTIFIED
}
"""The letter of each state but `certified`, whose letter says what the certificate rests on."""

_CODE = (
    "CASE state WHEN 'certified' THEN CASE certified_basis WHEN 'loss' THEN 'L' WHEN 'raw' THEN 'R' ELSE 'C' END "
    + " ".join(f"WHEN '{state}' THEN '{letter}'" for state, letter in LETTERS.items())
    + " END"
)

# A letter for each window, after a dot for each slot without one since the window before.
_STATES = f"""
SELECT coalesce(string_agg(CASE WHEN window_start > before
    THEN repeat('.', (extract(epoch FROM window_start - before) / %(step)s)::int) ELSE '' END || {_CODE}, ''
  ORDER BY window_start), '') AS states, clock_timestamp() AS at
FROM (SELECT w.window_start, lag(w.window_end, 1, %(start)s) OVER (ORDER BY w.window_start) AS before, {STATE} AS state,
    w.certified_basis
  FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
  WHERE w.pipeline = %(pipeline)s AND w.window_start >= %(start)s AND w.window_start < %(end)s) s
"""

_LETTERS = f"""
SELECT coalesce(array_agg((extract(epoch FROM window_start) * 1000)::bigint), '{{}}') AS starts,
  coalesce(string_agg({_CODE}, ''), '') AS states, clock_timestamp() AS at
FROM (SELECT w.window_start, {STATE} AS state, w.certified_basis
  FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
  WHERE w.pipeline = %(pipeline)s AND w.window_start >= %(start)s AND w.window_start < %(end)s) s
"""

_DRIVER = f"""
SELECT {STATE_OF_DRIVER} AS driver, clock_timestamp() AS at, d.heartbeat_at AS heard_at, d.progress_at, p.log_retention,
  (SELECT min(k.unknown_schema_why) FROM onceover.kafka_partition k WHERE k.pipeline = p.name) AS unknown_schema,
  (SELECT string_agg(format('schema %%s since %%s (%%s)', s.schema, s.since, s.said), '; ' ORDER BY s.met_at) FROM (
    SELECT w.schema, w.met_at, to_char(w.met_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') AS since,
      left(CASE WHEN w.is_read THEN w.difference ELSE 'quarantine: ' || w.difference END, 160) AS said
    FROM onceover.writer_schema w WHERE w.pipeline = p.name AND w.difference <> ''
    ORDER BY w.is_read, w.met_at DESC LIMIT 5) s) AS schemas,
  (SELECT coalesce(sum(greatest(greatest(k.end_offset, k.high_watermark) - k.reach, 0)), 0)::bigint
   FROM onceover.kafka_partition k WHERE k.pipeline = p.name) AS waiting
FROM onceover.pipeline p LEFT JOIN onceover.driver d ON d.pipeline = p.name AND d.superseded_at IS NULL
WHERE p.name = %s
"""

# Unbroken: the next window begins where this one ends, and all that is shown of a range is the same for both.
_TROUBLE = f"""
WITH troubled AS (
  SELECT w.window_start, w.window_end, {STATE} AS state, w.tries, w.blocked_why, w.records, {LOG_UNTIL} AS log_until,
    CASE WHEN w.claimed_until >= clock_timestamp() THEN w.claimed_by END AS held_by, found.*,
    t.who AS taken_by, t.detail ->> 'ticket' AS ticket
  FROM unnest(%(unsettled)s::timestamptz[]) unsettled JOIN onceover."window" w ON w.window_start = unsettled
  JOIN onceover.pipeline p ON p.name = w.pipeline CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(f.kind ORDER BY f.kind), '{{}}'::text[]) AS findings, min(f.first_seen_at) AS since,
      sum((f.evidence ->> 'difference')::bigint)
        FILTER (WHERE jsonb_typeof(f.evidence -> 'difference') = 'number')::bigint AS difference
    FROM onceover.finding f WHERE f.pipeline = w.pipeline AND f.window_start = w.window_start
      AND f.resolved_at IS NULL) found {WITH_TAKING}
  WHERE w.pipeline = %(pipeline)s),
chosen AS (
  SELECT *, jsonb_build_array(state, findings, blocked_why, held_by, taken_by, ticket) AS shown FROM troubled
  WHERE CASE WHEN %(state)s::text IS NULL THEN findings <> '{{}}' OR state NOT IN ('open', 'certified')
    ELSE state = %(state)s END),
begun AS (
  SELECT *, lag(window_end) OVER w IS DISTINCT FROM window_start OR lag(shown) OVER w IS DISTINCT FROM shown AS begins
  FROM chosen WINDOW w AS (ORDER BY window_start)),
numbered AS (SELECT *, count(*) FILTER (WHERE begins) OVER (ORDER BY window_start) AS number FROM begun)
SELECT min(window_start) AS start, max(window_end) AS "end", count(*) AS windows, state, findings, blocked_why, held_by,
  taken_by, ticket, min(since) AS since, sum(difference)::bigint AS difference, min(log_until) AS log_until,
  max(tries) AS tries
FROM numbered GROUP BY number, state, findings, blocked_why, held_by, taken_by, ticket
HAVING %(after)s::timestamptz IS NULL OR min(window_start) > %(after)s
ORDER BY 1 LIMIT %(limit)s
"""

_WRONG = """
SELECT min(f.first_seen_at) AS since, count(DISTINCT f.window_start) AS windows,
  coalesce(sum((evidence ->> 'difference')::bigint) FILTER (WHERE jsonb_typeof(evidence -> 'difference') = 'number'
    AND (evidence ->> 'difference')::bigint > 0), 0)::bigint AS too_many,
  coalesce(-sum((evidence ->> 'difference')::bigint) FILTER (WHERE jsonb_typeof(evidence -> 'difference') = 'number'
    AND (evidence ->> 'difference')::bigint < 0), 0)::bigint AS too_few
FROM onceover.finding f JOIN onceover."window" w USING (pipeline, window_start)
WHERE f.pipeline = %s AND f.resolved_at IS NULL AND f.kind = ANY(%s) AND w.expired_at IS NULL
"""


@contextmanager
def read_consistently(connection: Connection) -> Iterator[None]:
    """Read one snapshot until the block ends; a statement that takes longer than SNAPSHOT_SECONDS is cancelled."""
    with in_snapshot(connection):
        # A page reads some windows of a ledger whose indices are in memory: an index is cheaper than all its rows.
        connection.execute(f"SET LOCAL statement_timeout = '{SNAPSHOT_SECONDS}s'; SET LOCAL random_page_cost = 1.1")
        yield


def read_states(
    connection: Connection, pipeline: str, start: datetime, end: datetime, minutes: int
) -> Mapping[str, Any]:
    """Return `states`, a letter for each slot of that many minutes in `[start, end)`, `.` where no window is, and `at`,
    when they were so."""
    key = {"pipeline": pipeline, "start": start, "end": end, "step": minutes * 60}
    (row,) = connection.execute(_STATES, key).fetchall()
    slots = int((end - start).total_seconds()) // (minutes * 60)
    return {**row, "states": row["states"].ljust(slots, ".")}


def read_letters(
    connection: Connection, pipeline: str, start: datetime, end: datetime
) -> tuple[Mapping[int, str], datetime]:
    """Return the letter of each window in `[start, end)`, by its start in ms, and when they were so."""
    (row,) = connection.execute(_LETTERS, {"pipeline": pipeline, "start": start, "end": end}).fetchall()
    return dict(zip(row["starts"], row["states"], strict=True)), row["at"]


def list_troubled_ranges(
    connection: Connection, pipeline: str, state: str | None, after: datetime | None, limit: int
) -> list[Mapping[str, Any]]:
    """Return unbroken ranges of windows with the same state, findings, blocking reason and holders, those that begin
    after `after`: windows in that state, or without one those that are closed and not certified, or have a finding."""
    key: dict[str, object] = {"pipeline": pipeline, "state": state, "after": after, "limit": limit}
    key["unsettled"] = [row["window_start"] for row in connection.execute(UNSETTLED, key)]
    return list(connection.execute(_TROUBLE, key))


def sum_wrong(connection: Connection, pipeline: str, kinds: Sequence[str]) -> Mapping[str, Any]:
    """Return how wrong published rows are by open findings of these kinds: `too_many`, `too_few` records, `windows`,
    and `since` when (None: nothing is wrong)."""
    return connection.execute(_WRONG, [pipeline, list(kinds)]).fetchall()[0]


def list_running(connection: Connection, pipeline: str) -> list[Mapping[str, Any]]:
    """Return the repairs that hold windows now: `held_by`, `windows`, and their request's `who`, `why` and run."""
    return list(
        connection.execute(
            """
            SELECT held.*, q.request_id, q.who, q.why, q.dag_id, q.run_id FROM (
              SELECT claimed_by AS held_by, count(*) AS windows FROM onceover."window"
              WHERE pipeline = %s AND claimed_until >= clock_timestamp() GROUP BY 1) held
            LEFT JOIN onceover.repair_request q ON 'request:' || q.request_id = held.held_by ORDER BY held_by
            """,
            [pipeline],
        )
    )


def list_pipeline_findings(connection: Connection, pipeline: str) -> list[Mapping[str, Any]]:
    """Return the open findings about the whole pipeline: `kind`, `evidence` and `since`."""
    return list(
        connection.execute(
            "SELECT kind, evidence, first_seen_at AS since FROM onceover.finding "
            "WHERE pipeline = %s AND window_start IS NULL AND resolved_at IS NULL ORDER BY finding_id",
            [pipeline],
        )
    )


def read_driver(connection: Connection, pipeline: str) -> Mapping[str, Any]:
    """Return the state of a pipeline's `driver` as metrics have it, `at` this moment, when it was `heard_at` last and
    its `progress_at`, how many offsets are `waiting`, Kafka's `log_retention`, why an `unknown_schema` holds ingest up,
    and how the newest `schemas` of values differ from the contract's, refused ones first; both None without any."""
    return connection.execute(_DRIVER, [pipeline]).fetchall()[0]
