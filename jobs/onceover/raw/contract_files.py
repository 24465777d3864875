"""The contracts that a pipeline's lines name, and from which offsets on, beside its raw:
`ROOT/PIPELINE/contracts/V1-FINGERPRINT.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise

from onceover.errors import BusyError, TerminalError, UsageError
from onceover.lines.contract_names import name_contract
from onceover.model.contract import Contract, Contracts, Cutovers
from onceover.model.contract_changes import list_refused_changes
from onceover.model.offsets import LARGEST_END, KafkaPartition
from onceover.raw.layout import Layout
from onceover.raw.sealed_json import unseal
from onceover.raw.store import RawStore, open_store

_NAME = re.compile(r"V([1-9][0-9]{0,8})-[0-9a-f]{16}\.json")


def keep_contracts(address: str, layout: Layout, names: Iterable[str], describe: Callable[[str], bytes]) -> None:
    """Write the file of each of these contracts that has none; `describe` returns its content. A file never changes.

    Raises UsageError if there is a file of a contract that is not among the names: the ledger has forgotten it.
    """
    files, names = open_store(address), list(names)
    there = _list_names(files, layout)
    if other := sorted(there.difference(f"{name}.json" for name in names)):
        raise UsageError(explain_unknown_files(layout, other))
    for name in names:
        if f"{name}.json" not in there:
            with suppress(BusyError):  # another process wrote the same file
                files.create(f"{layout.contract_folder}/{name}.json", describe(name))


def explain_unknown_files(layout: Layout, names: Iterable[str]) -> str:
    """Return what files of contracts that the ledger does not know mean, and the way out."""
    paths = ", ".join(f"{layout.contract_folder}/{name}" for name in names)
    return (
        f"the ledger does not know the contract of {paths}, which lines may name: if it was restored from a "
        f"backup older than a migration, put the contract of the first of these into pipelines/{layout.pipeline}.toml "
        f"and run `onceover pipelines migrate {layout.pipeline}`; if it is not the pipeline's, move the file out of "
        "that folder"
    )


def read_contracts(address: str, layout: Layout) -> Contracts | None:
    """Return the contracts that have files, from version 1 on, and their cutovers; None without files.

    Raises TerminalError, with the path, for a file that is not as it was written, for two files of one version, for a
    version without one between others, and for one that begins before an earlier one.
    """
    files = open_store(address)
    contracts: dict[int, tuple[str, Contract]] = {}
    cutovers: dict[KafkaPartition, dict[int, int]] = {}
    for name in sorted(_list_names(files, layout)):
        path = f"{layout.contract_folder}/{name}"
        version, contract, first_offsets = _parse(path, name, files.read(path) or b"")
        if version in contracts:
            raise TerminalError(
                f"{contracts[version][0]} and {path} are both version {version} of the contract: move the one "
                "that is not the pipeline's out of that folder"
            )
        contracts[version] = path, contract
        for source, first in first_offsets.items():
            cutovers.setdefault(source, {})[version] = first
    for version in range(1, len(contracts) + 1):
        if version not in contracts:
            raise TerminalError(
                f"{layout.contract_folder} has version {max(contracts)} of the contract and lacks version "
                f"{version}: put its file back from a backup"
            )
    ordered = [contracts[version] for version in sorted(contracts)]
    for of_source in cutovers.values():
        for (old_version, old_first), (version, first) in pairwise(sorted(of_source.items())):
            if first < old_first:
                raise TerminalError(
                    f"{contracts[version][0]} begins before {contracts[old_version][0]} does: put both files back from "
                    "a backup"
                )
    for (earlier, old), (path, new) in pairwise(ordered):
        if changes := list_refused_changes(old, new):
            raise TerminalError(
                f"{earlier} and {path} cannot be of one pipeline ({', '.join(changes)}): move what is not the "
                "pipeline's out of that folder"
            )
    if not ordered:
        return None
    return Contracts(tuple(contract for _, contract in ordered), Cutovers(len(ordered), cutovers))


def _list_names(files: RawStore, layout: Layout) -> frozenset[str]:
    """List the files of contracts; leaves out those of a writer that was killed, and what is no JSON."""
    found = files.list_files(layout.contract_folder)
    return frozenset(name for name, _ in found if name.endswith(".json") and not name.startswith("."))


def _parse(path: str, name: str, content: bytes) -> tuple[int, Contract, dict[KafkaPartition, int]]:
    named = _NAME.fullmatch(name)
    try:
        values = unseal(content)
        contract = Contract.from_definition(values["contract"])
        first_offsets = {KafkaPartition(str(at), int(number)): first for at, number, first in values["cutovers"]}
        if not all(type(first) is int and 0 <= first < LARGEST_END for first in first_offsets.values()):
            raise ValueError("a cutover is no offset")
        if len(first_offsets) < len(values["cutovers"]):
            raise ValueError("a Kafka partition is named twice")
        version = int(named[1]) if named else 0
        if f"{name_contract(contract, version)}.json" != name:
            raise ValueError("its definition has another fingerprint")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, UsageError) as error:
        raise TerminalError(
            f"{path} is not the contract that its name says ({type(error).__name__}): put the file back from a "
            "backup, or, if it is not the pipeline's, move it out of that folder"
        ) from error
    return version, contract, first_offsets
