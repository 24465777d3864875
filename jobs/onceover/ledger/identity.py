"""The ledger's identity, and what it holds of a pipeline: the facts that decide whose a raw root is."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg import sql

from onceover.ledger.database import Connection
from onceover.model.offsets import KafkaPartition
from onceover.model.root_marker import LedgerIdentity


@dataclass(frozen=True, slots=True)
class LedgerHoldings:
    """What the ledger holds of a pipeline; `has_rows` is of its aggregate table, which may outlive the ledger.
    `raw_store` is the one that landed batches wrote to, None before the first."""

    raw_store: str | None
    is_registered: bool
    has_landed: bool
    has_rows: bool


def read_identity(connection: Connection) -> LedgerIdentity:
    """Return the identity of the ledger and of the database that holds it."""
    (row,) = connection.execute(
        """
        SELECT ledger_id, (SELECT system_identifier FROM pg_control_system()) AS cluster,
          (SELECT oid FROM pg_database WHERE datname = current_database()) AS database
        FROM onceover.ledger
        """
    ).fetchall()
    return LedgerIdentity(row["ledger_id"], f"{row['cluster']}/{row['database']}")


def read_holdings(connection: Connection, pipeline: str) -> LedgerHoldings:
    """Return what the ledger holds of the pipeline."""
    (row,) = connection.execute(
        """
        SELECT (SELECT raw_store FROM onceover.pipeline WHERE name = %(name)s) AS raw_store,
          EXISTS (SELECT 1 FROM onceover.pipeline WHERE name = %(name)s) AS registered,
          EXISTS (SELECT 1 FROM onceover.batch WHERE pipeline = %(name)s AND state = 'landed') AS landed,
          to_regclass('aggregates.' || quote_ident(%(name)s)) IS NOT NULL AS has_table
        """,
        {"name": pipeline},
    ).fetchall()
    table = sql.Identifier("aggregates", pipeline)
    filled = row["has_table"] and connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table)).fetchone()
    raw_store = row["raw_store"] if row["landed"] else None
    return LedgerHoldings(raw_store, row["registered"], row["landed"], bool(filled))


def knows_driver(connection: Connection, pipeline: str, holder: UUID) -> bool:
    """Return whether this ledger gave that driver its epoch."""
    known = connection.execute("SELECT 1 FROM onceover.driver WHERE holder = %s AND pipeline = %s", [holder, pipeline])
    return known.fetchone() is not None


def read_origins(connection: Connection, pipeline: str) -> dict[KafkaPartition, int]:
    """Return where accounting begins, by generation and Kafka partition."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, origin FROM onceover.kafka_partition WHERE pipeline = %s", [pipeline]
    )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["origin"] for row in rows}
