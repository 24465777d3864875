"""Pipelines and the versions of their contracts, as registered in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from psycopg.types.json import Jsonb

from onceover.errors import BusyError, ContractChangedError, UsageError
from onceover.ledger.aggregates import AggregateTable, Fingerprint
from onceover.ledger.database import Connection
from onceover.ledger.restatements import list_restatements
from onceover.model.contract import Columns, Contract, Contracts, Cutovers
from onceover.model.contract_changes import list_changed_parts
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import Pipeline
from onceover.model.poison import PoisonRecord
from onceover.model.restatement import Restatement
from onceover.model.windowing import Windowing


@dataclass(frozen=True, slots=True)
class RegisteredPipeline:
    """A pipeline with the contract version in force. `versions` are all contracts from the first on, with columns;
    `cutovers` say which version a record has, `poison` which records no SQL is evaluated for."""

    name: str
    contract_version: int
    contract: Contract
    columns: Columns
    watermark: datetime | None
    every_window_closed: bool
    versions: tuple[tuple[Contract, Columns], ...]
    cutovers: Cutovers
    poison: tuple[PoisonRecord, ...] = ()
    restatements: tuple[Restatement, ...] = ()

    @property
    def windowing(self) -> Windowing:
        """Where windows begin, for records of any version: later versions may know later changes of a zone's offset."""
        return self.versions[-1][0].windowing

    @property
    def table(self) -> AggregateTable:
        return AggregateTable(self.name, self.windowing, self.columns)

    @property
    def contracts(self) -> Contracts:
        versions = tuple(contract for contract, _ in self.versions)
        return Contracts(versions, self.cutovers, self.poison, self.restatements)

    def list_poison(self) -> tuple[PoisonRecord, ...]:
        """Return the records that are not evaluated under this version."""
        return self.contracts.list_poison(self.contract_version)

    def select_version(self, version: int) -> RegisteredPipeline:
        """Return the pipeline under that contract version. Raises ContractChangedError for a newer one."""
        if version > len(self.versions):
            raise _migrated(self.name, version)
        contract, columns = self.versions[version - 1]
        return replace(self, contract_version=version, contract=contract, columns=columns)

    def read_fingerprints(
        self, connection: Connection, versions: Mapping[datetime, int]
    ) -> dict[datetime, Fingerprint]:
        """Return the fingerprint of each window's rows now, by the columns of the contract version of its certificate.
        Raises ContractChangedError for a newer version."""
        found: dict[datetime, Fingerprint] = {}
        for version in set(versions.values()):
            starts = [start for start, own in versions.items() if own == version]
            found |= self.select_version(version).table.fingerprints(connection, starts)
        return found

    def select_ranges(self, ranges: Sequence[OffsetRange]) -> RegisteredPipeline:
        """Return the pipeline under the one contract version that all of these offsets have."""
        (version,) = self.cutovers.cut_by_version(ranges)
        return self.select_version(version)


def register_pipeline(connection: Connection, pipeline: Pipeline, columns: Columns) -> RegisteredPipeline:
    """Record the pipeline at its first start and create its tables; refuse a contract that changed since.

    Raises ContractChangedError: with another contract one record's ID could land in two windows, each looking clean.
    """
    with connection.transaction():
        fresh = connection.execute(
            "INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1) ON CONFLICT DO NOTHING "
            "RETURNING name",
            [pipeline.name],
        ).fetchone()
        if fresh:
            keep_contract(connection, pipeline.name, pipeline.contract, 1, columns, {})
        registered = require_same_contract(connection, pipeline)
        registered.table.create(connection)
        keep_raw_store(connection, pipeline)
    return registered


def keep_raw_store(connection: Connection, pipeline: Pipeline) -> None:
    """Record the pipeline's raw store, unless a batch has landed: its raw is where that batch wrote it."""
    connection.execute(
        "UPDATE onceover.pipeline SET raw_store = %(store)s WHERE name = %(name)s AND raw_store <> %(store)s AND NOT "
        "EXISTS (SELECT 1 FROM onceover.batch WHERE pipeline = %(name)s AND state = 'landed')",
        {"store": pipeline.storage.raw_store, "name": pipeline.name},
    )


def keep_contract(
    connection: Connection,
    name: str,
    contract: Contract,
    version: int,
    columns: Columns,
    cutovers: Mapping[KafkaPartition, int],
    who: str | None = None,
    why: str | None = None,
) -> None:
    """Record a pipeline's contract as that version, with its first offset in each Kafka partition, and put it into
    force; `who` and `why` are of its cutover, None for the first version."""
    at = [(source.generation, source.kafka_partition, offset) for source, offset in sorted(cutovers.items())]
    connection.execute(
        "INSERT INTO onceover.contract (pipeline, version, definition, columns, cutovers, who, why) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [name, version, Jsonb(contract), Jsonb(columns), Jsonb(at), who, why],
    )
    connection.execute("UPDATE onceover.pipeline SET contract_version = %s WHERE name = %s", [version, name])


def restore_contracts(
    connection: Connection,
    name: str,
    versions: Sequence[tuple[Contract, Columns]],
    cutovers: Mapping[KafkaPartition, Mapping[int, int]],
    who: str,
    why: str,
) -> RegisteredPipeline:
    """Register the pipeline, or replace the contracts of one of which nothing has landed, by these from version 1 on;
    `cutovers` are as in `Cutovers`. Returns the pipeline, whose tables may be missing."""
    with connection.transaction():
        connection.execute(
            "INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1) ON CONFLICT DO NOTHING", [name]
        )
        known = connection.execute(
            "DELETE FROM onceover.contract WHERE pipeline = %s RETURNING version, poison", [name]
        ).fetchall()
        for version, (contract, columns) in enumerate(versions, 1):
            by = (who, why) if version > 1 else (None, None)
            at = {source: of_source[version] for source, of_source in cutovers.items() if version in of_source}
            keep_contract(connection, name, contract, version, columns, at, *by)
        connection.cursor().executemany(  # what Spark dies of is known already
            "UPDATE onceover.contract SET poison = %s WHERE pipeline = %s AND version = %s",
            [(Jsonb(row["poison"]), name, row["version"]) for row in known],
        )
        return read_registered(connection, name)


def record_poison(connection: Connection, pipeline: str, found: Iterable[PoisonRecord]) -> None:
    """Record poison records of the contract's versions; those that are known stay as they are."""
    for version, of_version in groupby(sorted(found, key=attrgetter("version")), key=attrgetter("version")):
        connection.execute(
            """
            UPDATE onceover.contract SET poison = poison || (
              SELECT coalesce(jsonb_agg(record), '[]') FROM jsonb_array_elements(%s) record
              WHERE NOT poison @> jsonb_build_array(record - 'reason' - 'error'))
            WHERE pipeline = %s AND version = %s
            """,
            [
                Jsonb(
                    [
                        {**asdict(each.source), "offset": each.offset, "reason": each.reason, "error": each.error}
                        for each in {(one.source, one.offset): one for one in of_version}.values()
                    ]
                ),
                pipeline,
                version,
            ],
        )


def require_same_contract(connection: Connection, pipeline: Pipeline) -> RegisteredPipeline:
    """Return the registered pipeline. Raises ContractChangedError if its TOML has another contract than the ledger;
    what the ledger knows of the zone counts, and not what this machine does."""
    registered = read_registered(connection, pipeline.name)
    contract = pipeline.contract.with_zone_data_of(registered.contract)
    if registered.contract.fingerprint() != contract.fingerprint():
        parts = ", ".join(list_changed_parts(registered.contract, contract))
        raise ContractChangedError(
            f"pipelines/{pipeline.name}.toml: [contract] {parts} "
            f"differs from version {registered.contract_version} in the ledger; put it back, or cut over to it with "
            f"`onceover pipelines migrate {pipeline.name}`"
        )
    return registered


def require_in_force(connection: Connection, registered: RegisteredPipeline) -> None:
    """Raise ContractChangedError if the pipeline was cut over since `registered` was read, BusyError if windows were
    restated."""
    row = connection.execute(
        "SELECT contract_version, (SELECT count(*) FROM onceover.restatement s WHERE s.pipeline = p.name) AS number "
        "FROM onceover.pipeline p WHERE name = %s",
        [registered.name],
    ).fetchone()
    if row and row["contract_version"] != registered.contract_version:
        raise _migrated(registered.name, row["contract_version"])
    if row and row["number"] != len(registered.restatements):
        raise BusyError(f"windows of {registered.name} were restated meanwhile; nothing is wrong, start again")


def _migrated(name: str, version: int) -> ContractChangedError:
    return ContractChangedError(
        f"pipeline {name} was migrated to version {version} of its contract meanwhile; nothing is wrong, start again"
    )


def keep_log_retention(connection: Connection, name: str, retention_ms: int | None) -> None:
    """Record the retention of the topic's log, None for ever: a window can be read again from Kafka until then."""
    connection.execute(
        "UPDATE onceover.pipeline SET log_retention = make_interval(secs => %s) WHERE name = %s",
        [None if retention_ms is None else retention_ms / 1000, name],
    )


def is_registered(connection: Connection, name: str) -> bool:
    """Return whether the pipeline ever ran."""
    return connection.execute("SELECT 1 FROM onceover.pipeline WHERE name = %s", [name]).fetchone() is not None


def read_registered(connection: Connection, name: str) -> RegisteredPipeline:
    """Return a pipeline as registered in the ledger. Raises UsageError if it never ran."""
    rows = connection.execute(
        """
        SELECT p.contract_version, p.watermark, p.every_window_closed, c.version, c.definition, c.columns, c.cutovers,
          c.poison
        FROM onceover.pipeline p JOIN onceover.contract c ON c.pipeline = p.name
        WHERE p.name = %s ORDER BY c.version
        """,
        [name],
    ).fetchall()
    if not rows:
        raise UsageError(f"pipeline {name} has not run yet; start it with `onceover ingest {name}`")
    last = rows[-1]
    at: dict[KafkaPartition, dict[int, int]] = {}
    for row in rows:
        for generation, kafka_partition, offset in row["cutovers"]:
            at.setdefault(KafkaPartition(generation, kafka_partition), {})[row["version"]] = offset
    versions = tuple((Contract.from_definition(r["definition"]), Columns.from_json(r["columns"])) for r in rows)
    return RegisteredPipeline(
        name,
        last["contract_version"],
        *versions[-1],
        last["watermark"],
        last["every_window_closed"],
        versions,
        Cutovers(last["contract_version"], at),
        tuple(_parse_poison(each, row["version"]) for row in rows for each in row["poison"]),
        list_restatements(connection, name),
    )


def _parse_poison(stored: Mapping[str, Any], version: int) -> PoisonRecord:
    source = KafkaPartition(stored["generation"], stored["kafka_partition"])
    return PoisonRecord(source, stored["offset"], version, stored["reason"], stored["error"])
