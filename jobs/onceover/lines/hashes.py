"""The two hashes of a record: of its whole line, and of the content that a window's digest covers.

Many are hashed by polars-hash, a column at a time: a Python call of xxhash for each takes five times as long. A few are
not: Polars takes 0.2 s to import.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import numpy as np
import xxhash

from onceover.lines.views import view_stretches

LINE_HASH: Final = xxhash.xxh3_64_intdigest
CONTENT_HASH: Final = xxhash.xxh3_128_digest
FEW: Final = 2000


def hash_lines(data: memoryview, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the hash of each line's bytes `[start, end)` before the TAB of its hash (uint64); see `view_stretches`."""
    if len(start) <= FEW:
        return np.fromiter(map(LINE_HASH, _slice(data, start, end)), np.uint64, len(start))
    return _hash_column("xxh3_64", data, start, end)[0]


def hash_contents(data: memoryview, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return what each content `[start, end)` adds to a digest (n x 4, uint32): the parts of its hash. See
    `view_stretches`."""
    if len(start) <= FEW:
        digests = b"".join(map(CONTENT_HASH, _slice(data, start, end)))
        return np.frombuffer(digests, ">u4").reshape(-1, 4).astype(np.uint32)
    halves = np.stack(_hash_column("xxh3_128", data, start, end), axis=1)
    return halves.astype(">u8").view(">u4").astype(np.uint32)


def _slice(data: memoryview, start: np.ndarray, end: np.ndarray) -> Iterator[memoryview]:
    return (data[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True))


def _hash_column(name: str, data: memoryview, start: np.ndarray, end: np.ndarray) -> list[np.ndarray]:
    """Return the hashes of these bytes: 64 bits of each, or the upper and the lower ones."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a task has one core
    import polars_hash
    from polars import DataFrame, UInt64, col

    hashed = DataFrame({"": view_stretches(data, start, end)}).select(getattr(polars_hash.col("").nchash, name)())
    halves = [col("")] if name == "xxh3_64" else [col("") // 2**64, col("") % 2**64]
    return [hashed.select(half.cast(UInt64)).to_series().to_numpy() for half in halves]
