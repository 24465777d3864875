"""Lines of a contract that the ledger does not know, as after a restore from a backup older than a migration."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext


def explain_unknown(context: PipelineContext, names: Sequence[str]) -> str:
    """Return why lines that landed nowhere do not count, and the way out; `names` are the contracts they name."""
    name, folder = context.name, context.layout.contract_folder
    files = ", ".join(sorted({f"{folder}/V{each[1:]}.json" for each in names}))
    return (
        f"raw holds lines of {', '.join(names)} that never landed, and this ledger does not know that contract: if it "
        f"was restored from a backup older than a migration, put the contract of {files} into "
        f"pipelines/{name}.toml and run `onceover pipelines migrate {name}`; if the lines are not the pipeline's, take "
        "them out"
    )
