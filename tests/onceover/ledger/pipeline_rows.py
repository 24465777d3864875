"""All rows of a pipeline in the ledger, to compare histories with each other."""

from __future__ import annotations

from typing import Any

from psycopg import sql

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection

_OF_BATCH = "batch_id IN (SELECT batch_id FROM onceover.batch WHERE pipeline = %(name)s)"
_QUERIES = {
    "batch": "SELECT * FROM onceover.batch WHERE pipeline = %(name)s ORDER BY batch_id",
    "batch_range": f"SELECT * FROM onceover.batch_range WHERE {_OF_BATCH} ORDER BY batch_id, kafka_partition",
    "landing": "SELECT * FROM onceover.landing WHERE pipeline = %(name)s ORDER BY landing_id",
    "landing_part": "SELECT * FROM onceover.landing_part WHERE landing_id IN (SELECT landing_id FROM onceover.landing "
    "WHERE pipeline = %(name)s) ORDER BY landing_id, kafka_partition",
    "window": 'SELECT * FROM onceover."window" WHERE pipeline = %(name)s ORDER BY window_start',
    "certificate": "SELECT * FROM onceover.certificate WHERE pipeline = %(name)s ORDER BY window_start",
    "kafka_partition": "SELECT * FROM onceover.kafka_partition WHERE pipeline = %(name)s ORDER BY kafka_partition",
    "pipeline": "SELECT * FROM onceover.pipeline WHERE name = %(name)s",
}
_CLOCKS = ("begun_at", "landed_at", "committed_at", "created_at", "caught_up_since", "rolled_up_at", "read_until",
           "held_since")  # fmt: skip
_IDS = {
    "batch_id": "batch",
    "last_batch": "batch",
    "landing_id": "landing",
    "last_landing": "landing",
    "certificate_id": "certificate",
}


def read_rows(connection: Connection, known: RegisteredPipeline) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of a pipeline by table, without its name and clock times; IDs are numbered from 0."""
    rows = {table: connection.execute(query, {"name": known.name}).fetchall() for table, query in _QUERIES.items()}
    query = sql.SQL("SELECT * FROM {} ORDER BY window_start").format(known.table.table)
    rows["aggregates"] = connection.execute(query).fetchall()
    numbers = {table: {row[f"{table}_id"]: n for n, row in enumerate(rows[table])} for table in set(_IDS.values())}
    return {
        table: [
            {
                name: numbers[_IDS[name]][value] if name in _IDS and value is not None else value
                for name, value in row.items()
                if name not in (*_CLOCKS, "pipeline", "name")
            }
            for row in of_table
        ]
        for table, of_table in rows.items()
    }
