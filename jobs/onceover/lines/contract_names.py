"""A pipeline's contracts as its lines name them."""

from __future__ import annotations

from onceover.model.contract import Contracts


def name_contracts(contracts: Contracts) -> tuple[bytes, ...]:
    """Return each version, from 1 on, as lines that ingest wrote name it, then each as released lines do."""
    hashes = [contract.fingerprint()[:16] for contract in contracts.versions]
    return tuple(f"{letter}{version}-{of}".encode() for letter in "VR" for version, of in enumerate(hashes, 1))
