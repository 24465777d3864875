"""Digests as the columns of every table that holds one."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.model.digest import Digest


def digest_columns(digest: Digest) -> dict[str, int]:
    """The digest as the columns that every table that holds one has."""
    return dict(zip(("records", "high1", "low1", "high2", "low2"), digest.as_tuple(), strict=True))


def read_digest(row: Mapping[str, object], prefix: str = "") -> Digest:
    """The digest that a row of the ledger holds."""
    return Digest(*(int(str(row[prefix + name] or 0)) for name in ("records", "high1", "low1", "high2", "low2")))


def count_columns(count: Digest | None) -> dict[str, int | None]:
    """What a control row counts, as its columns: all NULL where nobody knows."""
    return {**digest_columns(count)} if count is not None else dict.fromkeys(digest_columns(Digest()))


def read_count(row: Mapping[str, object], prefix: str = "") -> Digest | None:
    """What a control row says that its window's rows count; None where nobody knows."""
    return None if row[prefix + "records"] is None else read_digest(row, prefix)


def compare_digests(one: str, other: str) -> str:
    """SQL: whether the rows under these two names hold the same digest."""
    left, right = (", ".join(f"{row}.{column}" for column in digest_columns(Digest())) for row in (one, other))
    return f"({left}) = ({right})"
