"""Pipelines and their contracts' versions, as the ledger knows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.aggregates import AggregateTable
from onceover.columns import Columns
from onceover.errors import ContractChangedError, UsageError
from onceover.ledger.database import Connection
from onceover.pipeline import Contract, Pipeline


@dataclass(frozen=True, slots=True)
class Registered:
    """A pipeline with the contract version in force."""

    name: str
    contract_version: int
    contract: Contract
    columns: Columns
    watermark: datetime | None
    every_window_closed: bool

    @property
    def table(self) -> AggregateTable:
        return AggregateTable(self.name, self.contract.window_minutes, self.columns)


def register(connection: Connection, pipeline: Pipeline, columns: Columns) -> Registered:
    """Note the pipeline at its first start and create its tables; refuse a contract that changed since.

    Raises ContractChangedError: with another contract one record's ID could land in two windows, each looking clean.
    """
    contract = pipeline.contract
    with connection.transaction():
        fresh = connection.execute(
            "INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1) ON CONFLICT DO NOTHING "
            "RETURNING name",
            [pipeline.name],
        ).fetchone()
        if fresh:
            connection.execute(
                "INSERT INTO onceover.contract (pipeline, version, fingerprint, definition, columns) "
                "VALUES (%s, 1, %s, %s, %s)",
                [pipeline.name, contract.fingerprint(), Jsonb(contract.definition()), Jsonb(columns.as_json())],
            )
        known = require_same_contract(connection, pipeline)
        known.table.create(connection)
    return known


def require_same_contract(connection: Connection, pipeline: Pipeline) -> Registered:
    """The registered pipeline, if its TOML still says what the ledger's current contract says."""
    known = registered(connection, pipeline.name)
    if known.contract.fingerprint() != pipeline.contract.fingerprint():
        old, new = known.contract.definition(), pipeline.contract.definition()
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        raise ContractChangedError(
            f"pipelines/{pipeline.name}.toml: [contract] {', '.join(changed)} differs from version "
            f"{known.contract_version} in the ledger; put it back, or give the new contract a pipeline name of its own"
        )
    return known


def keep_log_retention(connection: Connection, name: str, retention_ms: int | None) -> None:
    """How long the topic's log lasts, None for ever: it says until when a window can be read again from Kafka."""
    connection.execute(
        "UPDATE onceover.pipeline SET log_retention = make_interval(secs => %s) WHERE name = %s",
        [None if retention_ms is None else retention_ms / 1000, name],
    )


def is_registered(connection: Connection, name: str) -> bool:
    """Whether the pipeline ever ran."""
    return connection.execute("SELECT 1 AS one FROM onceover.pipeline WHERE name = %s", [name]).fetchone() is not None


def registered(connection: Connection, name: str) -> Registered:
    """What the ledger knows of a pipeline; raises UsageError if it never ran."""
    row = connection.execute(
        """
        SELECT p.name, p.contract_version, p.watermark, p.every_window_closed, c.definition, c.columns
        FROM onceover.pipeline p JOIN onceover.contract c ON c.pipeline = p.name AND c.version = p.contract_version
        WHERE p.name = %s
        """,
        [name],
    ).fetchone()
    if row is None:
        raise UsageError(f"pipeline {name} has not run yet; start it with `onceover ingest {name}`")
    return Registered(
        row["name"],
        row["contract_version"],
        Contract.from_definition(row["definition"]),
        Columns.from_json(row["columns"]),
        row["watermark"],
        row["every_window_closed"],
    )
