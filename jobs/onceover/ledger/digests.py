"""Digests as the columns of every table that holds one."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.digest import Digest


def digest_columns(digest: Digest) -> dict[str, int]:
    """The digest as the columns that every table that holds one has."""
    return dict(zip(("records", "high1", "low1", "high2", "low2"), digest.as_tuple(), strict=True))


def digest_of(row: Mapping[str, object], prefix: str = "") -> Digest:
    """The digest that a row of the ledger holds."""
    return Digest(*(int(str(row[prefix + name] or 0)) for name in ("records", "high1", "low1", "high2", "low2")))
