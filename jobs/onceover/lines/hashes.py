"""The two hashes of a record: of its whole line, and of the content that a window's digest covers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import xxhash

LINE_HASH: Final = xxhash.xxh3_64_intdigest
CONTENT_HASH: Final = xxhash.xxh3_128_digest


def hash_lines(bodies: Iterable[memoryview], count: int) -> np.ndarray:
    """Return the hash of each line's bytes before the TAB of its hash (uint64)."""
    return np.fromiter(map(LINE_HASH, bodies), np.uint64, count)


def hash_contents(contents: Iterable[memoryview], count: int) -> np.ndarray:
    """Return what each content adds to a digest (`count` x 4): the four 32-bit parts of its hash, as uint64."""
    return np.frombuffer(b"".join(map(CONTENT_HASH, contents)), ">u4").reshape(count, 4).astype(np.uint64)
