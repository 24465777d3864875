"""The digest of a set of records: two sides with equal digests hold the same records.

Per record the 128-bit hash XXH3 of its ID and content. It is cut into four unsigned 32-bit numbers, and each is summed
on its own, so that the digest of a union is the sum of digests: a doubled record shows (XOR would hide it), and 2^31
records fit before a bigint could overflow.

Chance of an accidental equal digest: at most 2^-128. Take two different multisets and one record whose multiplicity
differs between them by d != 0. Hold all other hashes fixed: each half-sum is equal only if d * half = c for one fixed
c, and since sums are integers and not residues, at most one of the 2^32 values of that half does it. Four independent,
uniform halves: 2^-128. XXH3 is not cryptographic, so this proves equality against accident, not against an
attacker who chooses records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import add, sub

from onceover.errors import UsageError

HALVES = ("high1", "low1", "high2", "low2")  # the columns of tables and DataFrames that hold a digest


@dataclass(frozen=True, slots=True)
class Digest:
    """Count and the four sums: high and low half of the hash's first 64 bits, high and low half of its last."""

    records: int = 0
    high1: int = 0
    low1: int = 0
    high2: int = 0
    low2: int = 0

    def __post_init__(self) -> None:
        if (self.records | self.high1 | self.low1 | self.high2 | self.low2) >> 63:  # of a negative number -1
            raise UsageError(f"digest {self.as_tuple()} has a part outside 0..2^63-1, which no set of records has")

    def __add__(self, other: Digest) -> Digest:
        return Digest(*map(add, self.as_tuple(), other.as_tuple()))

    def __sub__(self, part: Digest) -> Digest:
        """Return the digest of a whole without that part. Raise UsageError if it is not a part."""
        return Digest(*map(sub, self.as_tuple(), part.as_tuple()))

    def as_tuple(self) -> tuple[int, int, int, int, int]:
        return (self.records, self.high1, self.low1, self.high2, self.low2)

    def __str__(self) -> str:
        return f"{self.records} records {self.high1:x}.{self.low1:x}.{self.high2:x}.{self.low2:x}"


EMPTY = Digest()


def sum_digests(digests: Iterable[Digest]) -> Digest:
    """Return the digest of the union of disjoint sets, or of a multiset."""
    result = EMPTY
    for digest in digests:
        result = result + digest
    return result
