"""A release: a batch out of quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Release:
    """One batch that landed records out of quarantine: `ranges` hold exactly its IDs, which have that `version` of the
    contract and count by this release alone. Every other landing of their offsets was to quarantine."""

    batch_id: int
    version: int
    ranges: tuple[OffsetRange, ...]
