"""The restatements of a pipeline, in the ledger and beside its raw alike."""

from __future__ import annotations

from onceover.context import PipelineContext
from onceover.errors import UsageError
from onceover.ledger.restatements import list_restatements, lock_restatements, record_restatement
from onceover.raw.restatement_files import keep_restatements, read_restatements, require_whole


def share_restatements(context: PipelineContext) -> None:
    """Write to raw what only the ledger has, as after a kill, and to the ledger what only raw has, as after a restored
    backup. Every process that repairs or restates does so first. Raises TerminalError for a damaged file, UsageError
    for one that differs from the ledger, and for one under a contract that the ledger does not know."""
    kept = read_restatements(context.raw_address, context.layout)
    folder, name = context.layout.restatement_folder, context.name
    with context.ledger.transaction():
        lock_restatements(context.ledger)
        known = list_restatements(context.ledger, name)
        for mine in known:
            if kept.get(mine.number, mine) != mine:
                raise UsageError(
                    f"{folder}/{mine.number}.json is not the ledger's restatement {mine.number}; put the pipeline's "
                    "own file back"
                )
        require_whole(context.layout, kept, len(known))
        versions = context.read_registration().contract_version if kept else 0
        for number in range(len(known) + 1, max(kept, default=0) + 1):
            if kept[number].version > versions:
                raise UsageError(
                    f"{folder}/{number}.json is under version {kept[number].version} of the contract, and the ledger "
                    f"has {versions}: put that contract into pipelines/{name}.toml, and run `onceover pipelines "
                    f"migrate {name}` first"
                )
            record_restatement(context.ledger, name, kept[number])
    keep_restatements(context.raw_address, context.layout, (each for each in known if each.number not in kept))
