"""A cutover to a pipeline's changed contract: what changed, whether it can be cut over, and from which offsets.

A migration holds the pipeline's epoch, so no batch is under way meanwhile, and later batches use the old contract only
for offsets below the cutover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.errors import LockNotAvailable

from onceover.context import PipelineContext
from onceover.errors import BusyError, UsageError
from onceover.ledger.catalog import RegisteredPipeline, keep_contract, require_in_force
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, as_driver, require_epoch
from onceover.ledger.read_again import list_wanted
from onceover.ledger.windows import list_spans
from onceover.lines.contract_names import name_contract
from onceover.model.contract import Columns, Contract
from onceover.model.contract_changes import list_added_measures, list_changed_parts, list_refused_changes
from onceover.model.offsets import KafkaPartition
from onceover.model.windowing import Windowing
from onceover.raw.contract_files import explain_unknown_files, read_contracts

_OWNER = "onceover pipelines migrate"
Check = Callable[[Contract, Contract], tuple[Columns, list[str]]]
"""From an old and a new contract: the new one's columns, and descriptions of keys and measures whose type changes."""


@dataclass(frozen=True, slots=True)
class Migration:
    """An old and a new version of a contract (the same where nothing changed), the changed parts, the new measures, and
    each Kafka partition's first offset under the new version."""

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
    """Cut over to the contract in the pipeline's TOML; without `write`, only return the planned cutovers. If raw has
    that version already, as a ledger restored from an older backup finds it, the cutovers are those beside raw.

    Raises UsageError for a change that needs a pipeline of its own, for another contract than raw has next, and while
    offsets are missing, BusyError while an ingest runs.
    """
    registered, pipeline, ledger = context.read_registration(), context.pipeline, context.ledger
    version, old, new = registered.contract_version, registered.contract, pipeline.contract
    if old.zone_changes == new.zone_changes or find_moved_window(ledger, pipeline.name, new.windowing):
        new = new.with_zone_data_of(old)  # other data count from the version on under which no window moves
    if old.fingerprint() == new.fingerprint():
        return Migration(pipeline.name, version, version)
    _refuse(pipeline.name, list_refused_changes(old, new))
    kept = _find_kept(context, registered)
    new, found = kept or (new, None)
    columns, retyped = check(old, new)
    _refuse(pipeline.name, retyped)
    cutovers: Mapping[KafkaPartition, int]
    if write:
        with as_driver(ledger, pipeline.name, _OWNER) as epoch:
            cutovers = cut_over(ledger, epoch, registered, new, columns, who, why, found)
    else:
        cutovers = plan_cutovers(ledger, pipeline.name, found)
    return Migration(
        pipeline.name,
        version,
        version + 1,
        changed=tuple(list_changed_parts(old, new)),
        added=tuple(list_added_measures(old, new)),
        cutovers=tuple(cutovers.items()),
    )


def _find_kept(
    context: PipelineContext, registered: RegisteredPipeline
) -> tuple[Contract, Mapping[KafkaPartition, int]] | None:
    """Return the next version of the contract with its cutovers, if raw has it already."""
    layout = context.layout
    beside, known = read_contracts(context.raw_address, layout), registered.contracts.versions
    kept = beside.versions if beside else ()
    if beside is None or (len(kept) <= len(known) and kept == known[: len(kept)]):
        return None
    version = len(known) + 1
    new = context.pipeline.contract
    if kept[: version - 1] != known or kept[version - 1] != new.with_zone_data_of(kept[version - 1]):
        names = [f"{name_contract(contract, n)}.json" for n, contract in enumerate(kept, 1) if contract not in known]
        raise UsageError(explain_unknown_files(layout, names))
    at = {source: at[version] for source, at in sorted(beside.cutovers.at.items()) if version in at}
    return kept[version - 1], at


def find_moved_window(connection: Connection, pipeline: str, windowing: Windowing) -> datetime | None:
    """Return the ledger's first window that would begin or end elsewhere by this data of its zone."""
    spans = list_spans(connection, pipeline) if windowing.zone else []
    return next((at for at, end in spans if not windowing.is_start(at) or windowing.window_at(at).end != end), None)


def _refuse(name: str, what: list[str]) -> None:
    if what:
        raise UsageError(
            f"pipelines/{name}.toml: [contract] cannot be cut over: {', '.join(what)}; put it back, or give the new "
            "contract a pipeline name of its own"
        )


# A cutover lies at the frontier, or beyond it where a driver began to read and did not land: raw may hold lines of that
# attempt, dated by the old contract, and a driver that was only paused may append more. So all lines of one ID have one
# version, however often and by whichever driver they were written. A ledger restored from a backup older than a cutover
# finds the same cutover beside raw.

_PATIENCE_SECONDS = 5  # readers of the table queue behind the transaction that waits to add a column


def plan_cutovers(
    connection: Connection, pipeline: str, found: Mapping[KafkaPartition, int] | None = None
) -> Mapping[KafkaPartition, int]:
    """Return each Kafka partition's cutover if made now, or those that were `found` beside raw.

    Raises UsageError while offsets are missing before a cutover that is made now, and if a batch of this ledger began
    to read beyond one that was found: its lines are dated by the older contract.
    """
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, frontier, reach, (
          SELECT r.end_offset FROM onceover.batch_range r
          WHERE r.generation = k.generation AND r.kafka_partition = k.kafka_partition
            AND (SELECT b.pipeline = k.pipeline FROM onceover.batch b WHERE b.batch_id = r.batch_id)
          ORDER BY r.end_offset DESC LIMIT 1) AS begun
        FROM onceover.kafka_partition k WHERE pipeline = %s ORDER BY 1, 2
        """,
        [pipeline],
    ).fetchall()
    sources = [KafkaPartition(row["generation"], row["kafka_partition"]) for row in rows]
    begun = {source: row["begun"] or 0 for source, row in zip(sources, rows, strict=True)}
    if found is not None:
        if beyond := [source for source in sources if begun[source] > found.get(source, 0)]:
            raise UsageError(
                f"beside raw the contract is in force from offset {found.get(beyond[0], 0):,} of Kafka partition "
                f"{beyond[0].kafka_partition} on, and this ledger has read beyond it under the older one, as if two "
                f"ledgers had written to the root: empty this one, and run `onceover ledger rebuild {pipeline}`"
            )
        return found
    again = list_wanted(connection, pipeline)
    if any(row["frontier"] < row["reach"] for row in rows) or any(each.is_hole for each in again):
        raise UsageError(
            f"offsets of {pipeline} are missing, and a cutover needs all before it: see `onceover holes {pipeline}`; "
            "the next repair reads them again, `onceover accept-loss` accepts those that Kafka no longer has"
        )
    return {source: max(row["frontier"], begun[source]) for source, row in zip(sources, rows, strict=True)}


def cut_over(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    contract: Contract,
    columns: Columns,
    who: str,
    why: str,
    found: Mapping[KafkaPartition, int] | None = None,
) -> Mapping[KafkaPartition, int]:
    """Put the contract into force as the next version, in one transaction; returns the cutovers, those that
    were `found` beside raw, if any.

    Raises UsageError as `plan_cutovers` does, ContractChangedError if another migration was faster, BusyError while
    another transaction holds the tables.
    """
    version = registered.contract_version + 1
    try:
        with connection.transaction():
            require_epoch(connection, epoch)
            require_in_force(connection, registered)
            if find_moved_window(connection, registered.name, contract.windowing):
                raise BusyError(f"windows of {registered.name} have landed meanwhile; nothing is wrong, start again")
            cutovers = plan_cutovers(connection, registered.name, found)
            keep_contract(connection, registered.name, contract, version, columns, cutovers, who, why)
            _add_measures(connection, registered, columns)
    except LockNotAvailable as error:
        raise BusyError(
            f"a transaction has held the tables of {registered.name} for more than {_PATIENCE_SECONDS} s, so "
            "no measure can be added; nothing was changed, retry when that transaction has ended"
        ) from error
    return cutovers


def _add_measures(connection: Connection, registered: RegisteredPipeline, columns: Columns) -> None:
    existing = set(registered.columns.names)
    new = [column for column in columns.measures if column.name not in existing]
    derived = [column for column in columns.derived if column.name not in existing]
    if new:
        connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE_SECONDS}s'")
        registered.table.create(connection)
        registered.table.add(connection, new, derived)
