"""The days of which windows have new rows that no event of Airflow names, offered to its runs until one marks them.

The rows of repairs and certificates are the outbox: whatever publishes a window, from Airflow, a shell or by a restore,
writes its revision there in the same transaction, and a certificate names the one before it if late records were
counted since. A run of Airflow that dies between offer and mark leaves its windows to the next run: each window is
announced at least once. A day waits for the repairs of it that are planned or under way, so that it is announced whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import EAGER, EAGER_WHY

MAX_WINDOWS: Final = 5_000
MAX_DAYS: Final = 20
"""Days of one offer: within five seconds, Airflow has to have queued a run of each for each DAG that hears of them."""

_OF_REPAIRS: Final = "announced_at IS NULL AND replaced_revision IS NOT NULL"
_OF_CERTIFICATES: Final = "announced_at IS NULL AND replaced_certificate IS NOT NULL"
_OUTBOX: Final = (("onceover.repair", _OF_REPAIRS), ("onceover.certificate", _OF_CERTIFICATES))
_DUE: Final = f"""
WITH changed AS (
  SELECT *, (SELECT w.day FROM onceover."window" w WHERE (w.pipeline, w.window_start) = (c.pipeline, c.window_start))
  FROM (
    SELECT repair_id, NULL::bigint AS certificate_id, pipeline, window_start, finished_at AS since
    FROM onceover.repair WHERE pipeline = ANY(%(pipelines)s) AND {_OF_REPAIRS}
    UNION ALL
    SELECT repair_id, certificate_id, pipeline, window_start, created_at
    FROM onceover.certificate WHERE pipeline = ANY(%(pipelines)s) AND {_OF_CERTIFICATES}) c),
busy AS (
  SELECT DISTINCT pipeline, day FROM onceover.repair JOIN onceover."window" USING (pipeline, window_start)
  WHERE pipeline = ANY(%(pipelines)s) AND state IN ('planned', 'claimed')),
days AS (
  SELECT pipeline, day, count(*) AS windows, min(since) AS since
  FROM changed LEFT JOIN busy USING (pipeline, day) GROUP BY pipeline, day
  HAVING bool_and(busy.pipeline IS NULL) OR min(since) < clock_timestamp() - interval '1 hour'),
due AS (
  SELECT pipeline, day FROM (
    SELECT *, row_number() OVER earliest AS place, sum(windows) OVER earliest - windows AS earlier
    FROM days WINDOW earliest AS (ORDER BY since, pipeline, day)) AS placed
  WHERE place <= %(days)s AND earlier < %(windows)s)
"""
_OFFER: Final = f"""{_DUE},
offered AS (SELECT * FROM changed JOIN due USING (pipeline, day)),
repairs AS (
  UPDATE onceover.repair r SET announced_in = %(run)s FROM (
    SELECT l.repair_id FROM onceover.repair l JOIN offered o USING (repair_id) WHERE o.certificate_id IS NULL
    ORDER BY l.pipeline, l.window_start FOR UPDATE OF l) AS locked -- in the order of a confirmation
  WHERE r.repair_id = locked.repair_id),
certificates AS (
  UPDATE onceover.certificate c SET announced_in = %(run)s FROM offered o WHERE c.certificate_id = o.certificate_id)
SELECT o.pipeline, o.day::text AS day, q.request_id AS request, q.dag_id, q.run_id,
  coalesce(late.who, q.who) AS who, coalesce(late.why, q.why) AS reason,
  CASE WHEN late.certificate_id IS NOT NULL THEN 'late records' WHEN r.state = 'restored' THEN 'restore'
    ELSE 'repair' END AS by,
  CASE WHEN late.certificate_id IS NOT NULL THEN 'ingest' WHEN q.dag_id IS NOT NULL THEN 'DAG'
    WHEN q.who = '{EAGER}' AND q.why = '{EAGER_WHY}' AND q.range_start IS NULL AND r.state <> 'restored' THEN 'ingest'
    ELSE 'command line' END AS via,
  o.window_start AS start, w.window_end AS "end", valid.certificate_id AS certificate, valid.verdict,
  coalesce((r.after ->> 'revision')::integer, w.revision) AS revision,
  coalesce(former.records, (r.before #>> '{{control,records}}')::bigint) AS before,
  coalesce(late.records, (r.after #>> '{{control,records}}')::bigint) AS after
FROM offered o JOIN onceover."window" w USING (pipeline, window_start)
LEFT JOIN onceover.repair r ON r.repair_id = o.repair_id
LEFT JOIN onceover.repair_request q ON q.request_id = r.request_id
LEFT JOIN onceover.certificate late ON late.certificate_id = o.certificate_id
LEFT JOIN onceover.certificate former ON former.certificate_id = late.replaced_certificate
LEFT JOIN onceover.certificate valid ON valid.certificate_id = w.certificate_id AND w.is_certified
ORDER BY o.pipeline, o.day, q.request_id, who, reason, "by", o.window_start
"""


def is_due(connection: Connection, pipelines: Sequence[str]) -> bool:
    """Return whether a day of these pipelines is to be announced now."""
    return connection.execute(f"{_DUE} SELECT FROM due LIMIT 1", _limit(pipelines)).fetchone() is not None


def offer_days(connection: Connection, run: str, pipelines: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the changed windows of the days of these pipelines that are due, those that have waited longest, by
    pipeline, day and request. They count as offered to this run, and no others: an earlier try of the run may have died
    with its offer."""
    with connection.transaction():
        for table, waiting in _OUTBOX:
            connection.execute(f"UPDATE {table} SET announced_in = NULL WHERE {waiting} AND announced_in = %s", [run])
        return list(connection.execute(_OFFER, {"run": run, **_limit(pipelines)}))


def mark_announced(connection: Connection, run: str) -> int:
    """Mark what was last offered to this run as announced; return how many windows that are."""
    with connection.transaction():
        return sum(
            connection.execute(
                f"UPDATE {table} SET announced_at = clock_timestamp() WHERE {waiting} AND announced_in = %s", [run]
            ).rowcount
            for table, waiting in _OUTBOX
        )


def _limit(pipelines: Sequence[str]) -> dict[str, Any]:
    return {"pipelines": list(pipelines), "days": MAX_DAYS, "windows": MAX_WINDOWS}
