"""A column of views has the bytes of each stretch, short or long."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from onceover.lines.views import gather, view_stretches


def test_views_hold_each_stretch() -> None:
    random = np.random.default_rng(1)
    data = memoryview(random.bytes(10_000))
    start = np.append(np.sort(random.integers(0, 9_900, 4_998)), [9_988, 9_988])
    end = np.append(start[:-2] + np.tile([0, 1, 11, 12, 13, 40, 88], 714), [10_000, 9_988])
    views = view_stretches(data, start, end)
    views.validate(full=True)
    wanted = [bytes(data[a:b]) for a, b in zip(start.tolist(), end.tolist(), strict=True)]
    assert views.to_pylist() == wanted
    assert views.cast(pa.binary()).buffers()[2].to_pybytes()[: (end - start).sum()] == b"".join(wanted)


def test_nothing_is_viewed_of_an_empty_buffer() -> None:
    none = np.empty(0, np.int64)
    assert view_stretches(memoryview(b""), none, none).to_pylist() == []
    assert gather(memoryview(b""), none, 55).shape == (0, 55)


def test_last_bytes_of_a_buffer_are_gathered() -> None:
    assert gather(memoryview(b"abcdef"), np.array([3, 0]), 3).tobytes() == b"defabc"
