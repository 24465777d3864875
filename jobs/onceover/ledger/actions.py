"""Who did what to a pipeline, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from onceover.ledger.database import Connection

_ACTIONS = """
  SELECT q.created_at AS at, q.who, CASE WHEN r.restored > 0 THEN 'restore' ELSE 'repair' END AS what, q.why,
    r.windows, r.first, r.request_id, q.dag_id, q.run_id
  FROM (SELECT * FROM onceover.repair_request WHERE pipeline = %(pipeline)s
      AND (%(before)s::timestamptz IS NULL OR created_at < %(before)s) ORDER BY created_at DESC LIMIT %(limit)s) q
  LEFT JOIN LATERAL (SELECT count(*) AS windows, min(window_start) AS first, min(request_id) AS request_id,
    count(*) FILTER (WHERE state = 'restored') AS restored
    FROM onceover.repair WHERE request_id = q.request_id) r ON true
  UNION ALL
  SELECT created_at, who, 'accept loss', why, NULL, min(first_window), NULL, NULL, NULL
  FROM onceover.accepted_loss WHERE pipeline = %(pipeline)s GROUP BY created_at, who, why
  UNION ALL
  SELECT created_at, who, concat_ws(' for ', kind, detail ->> 'ticket'), coalesce(why, ''),
    (detail ->> 'windows')::bigint, (detail ->> 'first')::timestamptz, NULL, NULL, NULL
  FROM onceover.action WHERE pipeline = %(pipeline)s AND kind NOT LIKE 'audit %%'
  UNION ALL
  SELECT created_at, who, 'cut over to contract ' || version, why, NULL, NULL, NULL, NULL, NULL
  FROM onceover.contract WHERE pipeline = %(pipeline)s AND who IS NOT NULL
  UNION ALL
  SELECT min(begun_at), who, 'release from quarantine', why, NULL, NULL, NULL, NULL, NULL
  FROM onceover.batch WHERE pipeline = %(pipeline)s AND who IS NOT NULL GROUP BY who, why
  UNION ALL
  SELECT created_at, who, 'expire raw', why, count(window_start), min(window_start), NULL, NULL, NULL
  FROM onceover.expiry WHERE pipeline = %(pipeline)s GROUP BY created_at, who, why"""


def record_action(
    connection: Connection, pipeline: str, kind: str, who: str, why: str | None, detail: Mapping[str, object]
) -> int:
    """Record what a person did, of a `kind` that the table knows, with the facts of its kind; return its ID."""
    (row,) = connection.execute(
        "INSERT INTO onceover.action (pipeline, kind, who, why, detail) VALUES (%s, %s, %s, %s, %s) "
        "RETURNING action_id",
        [pipeline, kind, who, why, Jsonb(detail)],
    ).fetchall()
    return int(row["action_id"])


def list_actions(connection: Connection, pipeline: str, before: datetime | None, limit: int) -> list[Mapping[str, Any]]:
    """Return what was done before that moment: `at`, `who`, `what`, `why`, the number of `windows` and the `first` one
    if known, and the repair request's number, DAG and run."""
    key = {"pipeline": pipeline, "before": before, "limit": limit}
    return list(
        connection.execute(
            f"SELECT * FROM ({_ACTIONS}) actions WHERE %(before)s::timestamptz IS NULL OR at < %(before)s "
            "ORDER BY at DESC LIMIT %(limit)s",
            key,
        )
    )
