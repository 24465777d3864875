"""The hashes of a line are XXH3's: other values would make every line in raw a corrupt one."""

from __future__ import annotations

import numpy as np
import pytest

from onceover.lines.hashes import CONTENT_HASH, FEW, LINE_HASH, hash_contents, hash_lines


def test_hashes_of_nothing_are_those_that_xxhash_publishes() -> None:
    """The values of xxHash's own `xsum_sanity_check.c`, without a seed."""
    assert LINE_HASH(b"") == 0x2D06800538D394C2
    assert CONTENT_HASH(b"").hex() == "99aa06d3014798d86001c324468d497f"


@pytest.mark.parametrize("rows", [0, 3, FEW + 1000])
def test_arrays_of_hashes_have_each_in_its_row(rows: int) -> None:
    """XXH3 has a way of its own for up to 16, 128, 240 and more bytes; Python calls and Polars are to agree on all."""
    random = np.random.default_rng(1)
    data = memoryview(random.bytes(200_000))
    start = random.integers(0, 100_000, rows)
    end = start + random.integers(0, 600, rows)
    texts = [data[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]
    assert hash_lines(data, start, end).tolist() == list(map(LINE_HASH, texts))
    parts = hash_contents(data, start, end)
    assert parts.shape == (rows, 4)
    assert [b"".join(int(part).to_bytes(4) for part in row) for row in parts] == list(map(CONTENT_HASH, texts))
