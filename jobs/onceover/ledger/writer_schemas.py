"""The schemas that values of a pipeline were written with, and how each differs from the contract's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """Its ID or GUID, whether the contract reads its values, and the difference, empty without one."""

    name: str
    is_read: bool
    difference: str


def list_judged(connection: Connection, pipeline: str) -> Mapping[str, int]:
    """Return the IDs and GUIDs of all schemas that were met, each with the version of the contract that it was last
    compared with."""
    rows = connection.execute(
        "SELECT schema, contract_version FROM onceover.writer_schema WHERE pipeline = %s ORDER BY schema", [pipeline]
    )
    return {row["schema"]: row["contract_version"] for row in rows}


def record_schemas(
    connection: Connection, epoch: Epoch, contract_version: int, schemas: Iterable[WriterSchema]
) -> None:
    """Record how schemas differ from that version of the contract. Raises FencedError for a lost epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.cursor().executemany(
            """
            INSERT INTO onceover.writer_schema (pipeline, schema, contract_version, is_read, difference)
            VALUES (%s, %s, %s, %s, %s) ON CONFLICT (pipeline, schema) DO UPDATE
            SET contract_version = EXCLUDED.contract_version, is_read = EXCLUDED.is_read,
              difference = EXCLUDED.difference
            """,
            [(epoch.pipeline, each.name, contract_version, each.is_read, each.difference) for each in schemas],
        )


def count_schemas(connection: Connection, pipeline: str) -> dict[bool, int]:
    """Return how many schemas were met whose values are read, and how many others."""
    rows = connection.execute(
        "SELECT is_read, count(*) AS schemas FROM onceover.writer_schema WHERE pipeline = %s GROUP BY 1", [pipeline]
    )
    return {row["is_read"]: row["schemas"] for row in rows}
