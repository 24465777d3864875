"""A pipeline's changed contract put into force: what changed, whether it can be cut over, and the cutover itself.

Whoever migrates is the pipeline's driver for as long as that takes, so no batch is under way, and none begins under the
old contract afterwards but for offsets below the cutover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onceover.config.endpoints import address
from onceover.errors import UsageError
from onceover.ingest.cutover_table import cut_over, next_cutovers
from onceover.ledger.catalog import registered
from onceover.ledger.database import connect, require_current
from onceover.ledger.heart import as_driver
from onceover.model.contract import Columns, Contract, added, changed, refused
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
            "changed": list(self.changed),
            "added": list(self.added),
            "cutovers": [
                {"generation": s.generation, "kafka_partition": s.kafka_partition, "first_offset": at}
                for s, at in self.cutovers
            ],
        }


def migrate(pipeline: Pipeline, check: Check, who: str, why: str, *, write: bool) -> Migration:
    """Cut over to what the pipeline's TOML says; without `write`, only say where that would be now.

    Raises UsageError for a change that needs a pipeline of its own and while offsets are missing, BusyError while an
    ingest runs.
    """
    with connect(address("postgres"), f"{_OWNER} {pipeline.name}") as ledger:
        require_current(ledger)
        known = registered(ledger, pipeline.name)
        version, old, new = known.contract_version, known.contract, pipeline.contract
        if old.fingerprint() == new.fingerprint():
            return Migration(pipeline.name, version, version)
        _refuse(pipeline.name, refused(old, new))
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
        changed=tuple(changed(old, new)),
        added=tuple(added(old, new)),
        cutovers=tuple(cutovers.items()),
    )


def _refuse(name: str, what: list[str]) -> None:
    if what:
        raise UsageError(
            f"pipelines/{name}.toml: [contract] cannot be cut over: {', '.join(what)}; put it back, or give the new "
            "contract a pipeline name of its own"
        )
