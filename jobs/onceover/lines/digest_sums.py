"""Digests of many records in arrays: a record's count of one and the four parts of its hash, summed by a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.dedup import mark_changes

WIDTH = 5  # count and four sums, as in Digest


def count_all(content: np.ndarray) -> np.ndarray:
    """Return count and digest of the records with these hashes (n x 4)."""
    return np.array([len(content), *content.sum(axis=0, dtype=np.int64)])


def count_groups(content: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return count and digest (n x 5) of the groups of records that begin at `first`, from their hashes (n x 4)."""
    rows = np.zeros((len(first), WIDTH), np.int64)
    if len(first):
        rows[:, 0] = np.diff(first, append=len(content))
        for part in range(WIDTH - 1):  # each on its own, for a copy as int64 is twice as large as `content`
            rows[:, 1 + part] = np.add.reduceat(content[:, part], first, dtype=np.int64)
    return rows


@dataclass(frozen=True, slots=True)
class PieceSums:
    """Count and digest of the counting records (n x 5) by piece, release and Kafka partition, in order; -1 is none.
    Records of a release are summed apart from those that other landings of the piece read."""

    piece: np.ndarray
    release: np.ndarray
    source: np.ndarray
    sums: np.ndarray

    def __add__(self, other: PieceSums) -> PieceSums:
        return sum_by_piece(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))


def sum_records(piece: np.ndarray, release: np.ndarray, source: np.ndarray, content: np.ndarray) -> PieceSums:
    """Return the sums of records, whose hashes are `content`. Those of one piece mostly follow each other."""
    first = np.flatnonzero(mark_changes(piece, release, source))
    return sum_by_piece(piece[first], release[first], source[first], count_groups(content, first))


def sum_by_piece(piece: np.ndarray, release: np.ndarray, source: np.ndarray, rows: np.ndarray) -> PieceSums:
    """Return the sums of these rows, one for each piece, release and Kafka partition."""
    keys = (source, release, piece)
    order = np.lexsort(keys)
    source, release, piece = (key[order] for key in keys)
    first = np.flatnonzero(mark_changes(piece, release, source))
    return PieceSums(piece[first], release[first], source[first], sum_groups(rows[order], first))


def sum_groups(rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the sums of the groups of rows that begin at `first`."""
    return np.add.reduceat(rows, first, axis=0) if len(first) else np.zeros((0, WIDTH), np.int64)
