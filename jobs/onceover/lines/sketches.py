"""Sketches of distinct values: bitmaps that do not depend on the order or the number of times that a value is added."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from onceover.errors import TerminalError
from onceover.model.measures import SKETCH_BYTES

_MOST_SKETCHES = (2**31 - 1) // SKETCH_BYTES  # what one Arrow array of bytes can address


def unite(lists: pa.ChunkedArray) -> pa.Array:
    """Return the sketch of each list: of places of bits, the lowest one first in its byte as Spark's bitmaps have it,
    or of sketches, of any number. It is null where all are. Raises TerminalError for more lists than fit as sketches in
    an Arrow array."""
    if len(lists) > _MOST_SKETCHES:
        what = f"{len(lists):,} rows each keep a sketch of {SKETCH_BYTES} bytes, and one task joins {_MOST_SKETCHES:,}"
        raise TerminalError(f"{what}: take shorter windows, or fewer keys beside approx_count_distinct")
    joined = lists.combine_chunks()
    given = joined.flatten()
    row = np.repeat(np.arange(len(joined)), np.diff(joined.offsets.to_numpy()))
    row, given = row[given.is_valid().to_numpy(zero_copy_only=False)], given.drop_null()
    sketches = np.zeros((len(joined), SKETCH_BYTES), np.uint8)
    if pa.types.is_integer(given.type):
        place = given.to_numpy()
        np.bitwise_or.at(sketches, (row, place >> 3), np.left_shift(1, place & 7).astype(np.uint8))
    elif len(row):
        held = np.frombuffer(given.buffers()[1], np.uint64).reshape(-1, SKETCH_BYTES // 8)
        parts = held[given.offset : given.offset + len(given)]
        first = np.flatnonzero(np.diff(row, prepend=-1))
        sketches.view(np.uint64)[row[first]] = np.bitwise_or.reduceat(parts, first)
    known = pa.array(np.bincount(row, minlength=len(joined)) > 0).buffers()[1]
    offsets = np.arange(len(joined) + 1, dtype=np.int32) * SKETCH_BYTES
    return pa.Array.from_buffers(pa.binary(), len(joined), [known, pa.py_buffer(offsets), pa.py_buffer(sketches)])
