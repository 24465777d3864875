"""A pipeline's contracts as its lines name them."""

from __future__ import annotations

from onceover.model.contract import Contract, Contracts


def name_contracts(contracts: Contracts) -> tuple[bytes, ...]:
    """Return each version, from 1 on, as lines that ingest wrote name it, then each as released lines do."""
    return tuple(
        name_contract(contract, version, released=released).encode()
        for released in (False, True)
        for version, contract in enumerate(contracts.versions, 1)
    )


def name_contract(contract: Contract, version: int, *, released: bool = False) -> str:
    """Return that version as lines that ingest wrote name it, or as those that were `released` from quarantine do."""
    return f"{'R' if released else 'V'}{version}-{contract.fingerprint()[:16]}"
