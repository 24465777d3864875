"""The contracts beside raw, by which a rebuild reads it."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext
from onceover.errors import ContractChangedError, TerminalError
from onceover.lines.contract_names import name_contract
from onceover.model.contract import Contracts
from onceover.model.contract_changes import list_changed_parts
from onceover.model.raw_file import UnknownLines
from onceover.raw.contract_files import read_contracts


def read_kept_contracts(context: PipelineContext) -> Contracts:
    """Return the contracts from version 1 on, with their cutovers: those beside raw, or the TOML's where there are
    none.

    Raises ContractChangedError if the TOML's contract is not the newest of them, TerminalError as `read_contracts`.
    """
    kept, name = read_contracts(context.raw_address, context.layout), context.name
    if kept is None:
        return Contracts((context.pipeline.contract,))
    contract = context.pipeline.contract.with_zone_data_of(kept.newest)
    if kept.newest.fingerprint() != contract.fingerprint():
        path = f"{context.layout.contract_folder}/{name_contract(kept.newest, len(kept.versions))}.json"
        raise ContractChangedError(
            f"pipelines/{name}.toml: [contract] {', '.join(list_changed_parts(kept.newest, contract))} differs from "
            f"{path}, the newest contract of raw: put that contract into the TOML, run "
            f"`onceover ledger rebuild {name}`, and then, for another contract, `onceover pipelines migrate {name}`"
        )
    return kept


def require_known(context: PipelineContext, unknown: Sequence[UnknownLines]) -> None:
    """Raise TerminalError if raw has lines of a contract that has no file."""
    if unknown:
        first, folder = unknown[0], context.layout.contract_folder
        lines = sum(each.lines for each in unknown if each.contract == first.contract)
        others = len({each.contract for each in unknown}) - 1
        raise TerminalError(
            f"raw has {lines:,} lines of {first.contract}, as in {first.path}, and {folder} has no such "
            "contract"
            + (f", nor {others} more that lines name" if others else "")
            + f": put {folder}/V{first.contract[1:]}.json back from a backup, or, if the lines are not those of "
            f"{context.name}, move their files out of the pipeline's folder; then rebuild again"
        )
