"""Pipelines and their contracts' versions, as the ledger knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.errors import ContractChangedError, UsageError
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.database import Connection
from onceover.model.contract import Columns, Contract, Contracts, Cutovers, changed
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class RegisteredPipeline:
    """A pipeline with the contract version in force; `versions` are all of them from the first on, with their columns,
    and `cutovers` say which one a record has."""

    name: str
    contract_version: int
    contract: Contract
    columns: Columns
    watermark: datetime | None
    every_window_closed: bool
    versions: tuple[tuple[Contract, Columns], ...]
    cutovers: Cutovers

    @property
    def table(self) -> AggregateTable:
        return AggregateTable(self.name, self.contract.window_minutes, self.columns)

    @property
    def contracts(self) -> Contracts:
        return Contracts(tuple(contract for contract, _ in self.versions), self.cutovers)

    def select_version(self, version: int) -> RegisteredPipeline:
        """The pipeline under that version of its contract; ContractChangedError if that came after this was read."""
        if version > len(self.versions):
            raise _migrated(self.name, version)
        contract, columns = self.versions[version - 1]
        return replace(self, contract_version=version, contract=contract, columns=columns)

    def select_ranges(self, ranges: Sequence[OffsetRange]) -> RegisteredPipeline:
        """The pipeline under the one contract that all of these offsets have."""
        (version,) = self.cutovers.by_version(ranges)
        return self.select_version(version)


def register_pipeline(connection: Connection, pipeline: Pipeline, columns: Columns) -> RegisteredPipeline:
    """Note the pipeline at its first start and create its tables; refuse a contract that changed since.

    Raises ContractChangedError: with another contract one record's ID could land in two windows, each looking clean.
    """
    with connection.transaction():
        fresh = connection.execute(
            "INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1) ON CONFLICT DO NOTHING "
            "RETURNING name",
            [pipeline.name],
        ).fetchone()
        if fresh:
            keep_contract(connection, pipeline, 1, columns)
        known = require_same_contract(connection, pipeline)
        known.table.create(connection)
    return known


def keep_contract(
    connection: Connection,
    pipeline: Pipeline,
    version: int,
    columns: Columns,
    who: str | None = None,
    why: str | None = None,
) -> None:
    """Keep the pipeline's contract under that version; `who` changed it and `why`, None for the first one."""
    contract = pipeline.contract
    connection.execute(
        "INSERT INTO onceover.contract (pipeline, version, fingerprint, definition, columns, who, why) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [pipeline.name, version, contract.fingerprint(), Jsonb(contract), Jsonb(columns), who, why],
    )


def require_same_contract(connection: Connection, pipeline: Pipeline) -> RegisteredPipeline:
    """The registered pipeline, if its TOML still says what the ledger's current contract says."""
    known = read_registered(connection, pipeline.name)
    if known.contract.fingerprint() != pipeline.contract.fingerprint():
        raise ContractChangedError(
            f"pipelines/{pipeline.name}.toml: [contract] {', '.join(changed(known.contract, pipeline.contract))} "
            f"differs from version {known.contract_version} in the ledger; put it back, or cut over to it with "
            f"`onceover pipelines migrate {pipeline.name}`"
        )
    return known


def require_in_force(connection: Connection, known: RegisteredPipeline) -> None:
    """Raise ContractChangedError if the pipeline was migrated since `known` was read."""
    row = connection.execute("SELECT contract_version FROM onceover.pipeline WHERE name = %s", [known.name]).fetchone()
    if row and row["contract_version"] != known.contract_version:
        raise _migrated(known.name, row["contract_version"])


def _migrated(name: str, version: int) -> ContractChangedError:
    return ContractChangedError(
        f"pipeline {name} was migrated to version {version} of its contract meanwhile; nothing is wrong, start again"
    )


def keep_log_retention(connection: Connection, name: str, retention_ms: int | None) -> None:
    """How long the topic's log lasts, None for ever: it says until when a window can be read again from Kafka."""
    connection.execute(
        "UPDATE onceover.pipeline SET log_retention = make_interval(secs => %s) WHERE name = %s",
        [None if retention_ms is None else retention_ms / 1000, name],
    )


def is_registered(connection: Connection, name: str) -> bool:
    """Whether the pipeline ever ran."""
    return connection.execute("SELECT 1 AS one FROM onceover.pipeline WHERE name = %s", [name]).fetchone() is not None


def read_registered(connection: Connection, name: str) -> RegisteredPipeline:
    """What the ledger knows of a pipeline; raises UsageError if it never ran."""
    rows = connection.execute(
        """
        SELECT p.contract_version, p.watermark, p.every_window_closed, c.definition, c.columns,
          (SELECT json_agg(json_build_array(generation, kafka_partition, version, first_offset)) FROM onceover.cutover
           WHERE pipeline = p.name) AS cutovers
        FROM onceover.pipeline p JOIN onceover.contract c ON c.pipeline = p.name
        WHERE p.name = %s ORDER BY c.version
        """,
        [name],
    ).fetchall()
    if not rows:
        raise UsageError(f"pipeline {name} has not run yet; start it with `onceover ingest {name}`")
    last = rows[-1]
    at: dict[KafkaPartition, dict[int, int]] = {}
    for generation, kafka_partition, version, offset in last["cutovers"] or ():
        at.setdefault(KafkaPartition(generation, kafka_partition), {})[version] = offset
    versions = tuple((Contract.from_definition(r["definition"]), Columns.from_json(r["columns"])) for r in rows)
    return RegisteredPipeline(
        name,
        last["contract_version"],
        *versions[-1],
        last["watermark"],
        last["every_window_closed"],
        versions,
        Cutovers(last["contract_version"], at),
    )
