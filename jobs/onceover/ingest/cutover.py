"""A pipeline's changed contract put into force: what changed, whether it can be cut over, and the cutover itself.

Whoever migrates is the pipeline's driver for as long as that takes, so no batch is under way, and none begins under the
old contract afterwards but for offsets below the cutover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.errors import LockNotAvailable

from onceover.context import PipelineContext
from onceover.errors import BusyError, UsageError
from onceover.ledger.catalog import RegisteredPipeline, keep_contract, require_in_force
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, as_driver, require_epoch
from onceover.ledger.refills import list_wanted
from onceover.model.contract import Columns, Contract, list_added_measures, list_changed_parts, list_refused_changes
from onceover.model.offsets import KafkaPartition
from onceover.model.pipeline import Pipeline

_OWNER = "onceover pipelines migrate"
Check = Callable[[Contract, Contract], tuple[Columns, list[str]]]
"""The new contract's columns, by an old and a new contract, and what of it would be of another type."""


@dataclass(frozen=True, slots=True)
class Migration:
    """From which version of the contract to which; the parts that changed, the measures that are new, and the first
    offset of each Kafka partition that has the new version. Nothing changed where both versions are the same."""

    pipeline: str
    old: int
    new: int
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    cutovers: tuple[tuple[KafkaPartition, int], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "old_version": self.old,
            "new_version": self.new,
            "changed": self.changed,
            "added": self.added,
            "cutovers": [
                {"generation": s.generation, "kafka_partition": s.kafka_partition, "first_offset": at}
                for s, at in self.cutovers
            ],
        }


def migrate_contract(context: PipelineContext, check: Check, who: str, why: str, *, write: bool) -> Migration:
    """Cut over to what the pipeline's TOML says; without `write`, only say where that would be now.

    Raises UsageError for a change that needs a pipeline of its own and while offsets are missing, BusyError while an
    ingest runs.
    """
    known, pipeline, ledger = context.read_registration(), context.pipeline, context.ledger
    version, old, new = known.contract_version, known.contract, pipeline.contract
    if old.fingerprint() == new.fingerprint():
        return Migration(pipeline.name, version, version)
    _refuse(pipeline.name, list_refused_changes(old, new))
    columns, retyped = check(old, new)
    _refuse(pipeline.name, retyped)
    cutovers: Mapping[KafkaPartition, int]
    if write:
        with as_driver(ledger, pipeline.name, _OWNER) as epoch:
            cutovers = cut_over(ledger, epoch, known, pipeline, columns, who, why)
    else:
        cutovers = next_cutovers(ledger, pipeline.name)
    return Migration(
        pipeline.name,
        version,
        version + 1,
        changed=tuple(list_changed_parts(old, new)),
        added=tuple(list_added_measures(old, new)),
        cutovers=tuple(cutovers.items()),
    )


def _refuse(name: str, what: list[str]) -> None:
    if what:
        raise UsageError(
            f"pipelines/{name}.toml: [contract] cannot be cut over: {', '.join(what)}; put it back, or give the new "
            "contract a pipeline name of its own"
        )


# A changed contract cut over to: where each Kafka partition's records have the new version, in one transaction.
#
# The cutover lies at the frontier, or beyond it where a driver had begun to read and did not land: lines of that may
# stand in raw, dated by the old contract, and more may follow from a driver that was only paused. So every line of one
# ID is of one version, whoever wrote it and however often.

_PATIENCE_SECONDS = 5  # readers of the table queue up behind whoever waits to add a column


def next_cutovers(connection: Connection, pipeline: str) -> Mapping[KafkaPartition, int]:
    """Where a cutover would lie now. Raises UsageError while something before it is missing."""
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, frontier, reach, greatest(frontier, (
          SELECT max(r.end_offset) FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
          WHERE b.pipeline = k.pipeline AND r.generation = k.generation AND r.kafka_partition = k.kafka_partition
          )) AS first_offset
        FROM onceover.kafka_partition k WHERE pipeline = %s ORDER BY 1, 2
        """,
        [pipeline],
    ).fetchall()
    if any(row["frontier"] < row["reach"] for row in rows) or list_wanted(connection, pipeline):
        raise UsageError(
            f"offsets of {pipeline} are missing, and a cutover lies at a frontier: see `onceover holes {pipeline}`; "
            "the next repair reads them again, `onceover accept-loss` settles what Kafka has no more"
        )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["first_offset"] for row in rows}


def cut_over(
    connection: Connection,
    epoch: Epoch,
    known: RegisteredPipeline,
    pipeline: Pipeline,
    columns: Columns,
    who: str,
    why: str,
) -> Mapping[KafkaPartition, int]:
    """Put the pipeline's contract into force as the next version, all in one transaction; returns the cutovers.

    Raises UsageError as `next_cutovers`, ContractChangedError if somebody else was faster, BusyError while somebody
    reads the aggregates for long.
    """
    version = known.contract_version + 1
    try:
        with connection.transaction():
            require_epoch(connection, epoch)
            require_in_force(connection, known)
            cutovers = next_cutovers(connection, known.name)
            keep_contract(connection, pipeline, version, columns, who, why)
            connection.cursor().executemany(
                "INSERT INTO onceover.cutover VALUES (%s, %s, %s, %s, %s)",
                [(known.name, version, s.generation, s.kafka_partition, at) for s, at in cutovers.items()],
            )
            _add_measures(connection, known, columns)
            connection.execute(
                "UPDATE onceover.pipeline SET contract_version = %s WHERE name = %s", [version, known.name]
            )
    except LockNotAvailable as error:
        raise BusyError(
            f"a transaction has held the tables of {known.name} for more than {_PATIENCE_SECONDS} s, so no measure can "
            "be added; nothing was changed, try again when it has ended"
        ) from error
    return cutovers


def _add_measures(connection: Connection, known: RegisteredPipeline, columns: Columns) -> None:
    there = set(known.columns.names)
    new = [column for column in columns.measures if column.name not in there]
    if new:
        connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE_SECONDS}s'")
        known.table.create(connection)
        known.table.add(connection, new)
