"""Stretches of a buffer as an Arrow column, without a copy of the long ones."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

_HELD: Final = (
    12  # bytes that a view holds itself; of a longer stretch it has the first four, a buffer and a place in it
)


def view_stretches(data: memoryview, start: np.ndarray, end: np.ndarray) -> pa.Array:
    """Return the bytes `[start, end)` of each row as binary views. At least 12 bytes of the buffer follow each
    start."""
    views = np.zeros((len(start), 4), np.uint32)
    views[:, 0], views[:, 3] = end - start, start
    views[:, 1] = gather(data, start, 4).view("<u4")[:, 0]
    short = np.flatnonzero(views[:, 0] <= _HELD)
    if len(short):
        held = gather(data, start[short], _HELD)
        held[np.arange(_HELD) >= views[short, :1]] = 0
        views.view(np.uint8)[short, 4:] = held
    return pa.Array.from_buffers(pa.binary_view(), len(start), [None, pa.py_buffer(views), pa.py_buffer(data)])


def gather(data: memoryview, at: np.ndarray, width: int) -> np.ndarray:
    """Return the `width` bytes from each position, which all lie in the buffer: n x `width`."""
    if not len(at):
        return np.empty((0, width), np.uint8)
    # As one element of that size each: numpy takes twice as long to copy them as rows.
    whole = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
    gathered: np.ndarray = whole[at].view(np.uint8).reshape(-1, width)
    return gathered
