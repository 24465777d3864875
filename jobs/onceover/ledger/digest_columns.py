"""Digests as the columns of every table that holds one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onceover.model.digest import Digest


def digest_columns(digest: Digest) -> dict[str, int]:
    """Return the digest as columns."""
    return dict(zip(("records", "high1", "low1", "high2", "low2"), digest.as_tuple(), strict=True))


def digest_arrays(digests: Iterable[Digest]) -> tuple[list[int], ...]:
    """Return the digests as one array a column, for `unnest`."""
    rows = [digest.as_tuple() for digest in digests]
    return tuple([row[n] for row in rows] for n in range(len(digest_columns(Digest()))))


def read_digest(row: Mapping[str, object], prefix: str = "") -> Digest:
    """Return the digest in a row of the ledger."""
    values = (row[prefix + name] for name in ("records", "high1", "low1", "high2", "low2"))
    return Digest(*[value if isinstance(value, int) else int(str(value or 0)) for value in values])


def count_columns(count: Digest | None) -> dict[str, int | None]:
    """Return a control row's count as columns, all NULL for an unknown count."""
    return {**digest_columns(count)} if count is not None else dict.fromkeys(digest_columns(Digest()))


def read_count(row: Mapping[str, object], prefix: str = "") -> Digest | None:
    """Return the count in a control row, None if it is unknown."""
    return None if row[prefix + "records"] is None else read_digest(row, prefix)


def compare_digests(left: str, right: str) -> str:
    """Return SQL that is true if the columns with these two prefixes hold the same digest, and false if not."""
    first, second = (", ".join(f"{prefix}{name}" for name in digest_columns(Digest())) for prefix in (left, right))
    return f"({first}) IS NOT DISTINCT FROM ({second})"
