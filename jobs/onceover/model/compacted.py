"""What stands in for a window's text once that was let go."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.digest import Digest


@dataclass(frozen=True, slots=True)
class Compacted:
    """The Parquet file that stands in for a window's text: the records in it, and its bytes."""

    digest: Digest
    bytes: int
