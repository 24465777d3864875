"""How many records a measure skipped, because its SQL threw and the contract says to skip such records."""

from __future__ import annotations

from datetime import datetime

from psycopg import sql

from onceover.ledger.database import Connection
from onceover.model.contract import SKIPPED

_MEASURES = """
SELECT measure ->> 'name' AS name, measure ->> 'sql' AS of
FROM onceover.contract c JOIN onceover.pipeline p ON p.name = c.pipeline AND p.contract_version = c.version,
  jsonb_array_elements(definition -> 'measures') measure
WHERE pipeline = %s AND measure ->> 'operation' = %s
"""
_LAST_DAY = "window_start > (SELECT max(window_start) - interval '1 day' FROM {table})"


def count_skipped(connection: Connection, pipeline: str, window_start: datetime | None = None) -> dict[str, int]:
    """Return by measure the records that it skipped in that window, or in all windows of the pipeline's last day; none
    for a pipeline whose contract quarantines them."""
    skips = {row["name"]: row["of"] for row in connection.execute(_MEASURES, [pipeline, SKIPPED])}
    if not skips:
        return {}
    table = sql.Identifier("aggregates", pipeline)
    sums = (sql.SQL("coalesce(sum({0}), 0)::bigint AS {0}").format(sql.Identifier(name)) for name in skips)
    where = (
        sql.SQL("window_start = {}").format(window_start) if window_start else sql.SQL(_LAST_DAY).format(table=table)
    )
    query = sql.SQL("SELECT {} FROM {} WHERE {}").format(sql.SQL(", ").join(sums), table, where)
    (row,) = connection.execute(query).fetchall()
    return {measure: row[name] for name, measure in skips.items()}
