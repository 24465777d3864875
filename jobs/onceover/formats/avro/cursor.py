"""The places in a batch of Avro values where each is read next, all of them moved together.

Avro has no lengths to skip by, so a value is read field by field. A batch's values have the same fields: one step reads
one field of all of them, and numpy does in it what a loop over values would do in Python.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

PADDING: Final = 16
"""Bytes behind the last value: a number of at most 10 is read whole before its end is judged, 8 of a double."""
MAX_ITEMS: Final = 16_384
"""Items of all arrays and maps of one value: a round a step reads the next one of each value."""
_MAX_DEPTH: Final = 128
"""Skipped records and arrays within each other: Python calls at most four functions for each."""
_MAX_ENTERED: Final = 4 * MAX_ITEMS
_CUT_OFF: Final = "Avro cut off"


class Cursor:
    """Values as ranges of `data`, in order and apart, and PADDING behind them. A row is a value's number; rows are
    always in order.

    A value that is refused has its reason in `faults`, and is empty from there on: later steps read zeros of it.
    """

    def __init__(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        self.data = data
        self.at, self.end = starts.astype(np.int64), ends.astype(np.int64)
        self.items = np.zeros(len(starts), np.int64)
        self.faults: dict[int, str] = {}
        self.is_refused = np.zeros(len(starts), bool)
        self.depth, self.entered = 0, np.zeros(len(starts), np.int64)

    def refuse(self, rows: np.ndarray, why: str) -> None:
        """Refuse these rows; the first reason of a row stays."""
        for row in rows.tolist():
            self.faults.setdefault(row, why)
        self.end[rows] = self.at[rows]
        self.is_refused[rows] = True

    def descend(self, rows: np.ndarray) -> np.ndarray:
        """Enter one more record or array that may be within itself; return which of these rows have it to skip."""
        self.entered[rows] += 1
        if self.depth == _MAX_DEPTH:
            self.refuse(rows, f"Avro nested more than {_MAX_DEPTH} deep")
        too_many = self.entered[rows] > _MAX_ENTERED
        self.refuse(rows[too_many], f"Avro with more than {_MAX_ENTERED} records and arrays to skip")
        self.depth += 1
        left: np.ndarray = rows[~self.is_refused[rows]]
        return left

    def read_longs(self, rows: np.ndarray) -> np.ndarray:
        """Read a number of each row: zigzag, in groups of 7 bits, the lowest first."""
        at = self.at[rows]
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.uint64)
        at += 1
        more = np.flatnonzero(byte >= 0x80)
        for shift in range(7, 70, 7):
            if not len(more):
                break
            byte = self.data[at[more]]
            value[more] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            is_last = byte < (0x80 if shift < 63 else 2)
            more = more[~is_last]
        too_long = np.zeros(len(rows), bool)
        too_long[more] = at[more] <= self.end[rows[more]]
        cut = (at > self.end[rows]) | too_long
        if cut.any():
            self.refuse(rows[cut & ~too_long], _CUT_OFF)
            self.refuse(rows[too_long], "Avro with a number of more than 64 bits")
            at[cut], value[cut] = self.at[rows[cut]], 0
        self.at[rows] = at
        signed: np.ndarray = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        return signed

    def read_choice(self, rows: np.ndarray, count: int, why: str) -> np.ndarray:
        """Read a number from 0, below `count`, of each row; refuse any other for this reason."""
        number = self.read_longs(rows)
        if (beyond := (number < 0) | (number >= count)).any():
            self.refuse(rows[beyond], why)
            number[beyond] = 0
        return number

    def take(self, rows: np.ndarray, lengths: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Take so many bytes of each row; return where they start and end."""
        starts = self.at[rows]
        ends = starts + lengths
        cut = (ends < starts) | (ends > self.end[rows])
        if cut.any():
            self.refuse(rows[cut], _CUT_OFF)
            ends[cut] = starts[cut]
        self.at[rows] = ends
        return starts, ends

    def take_bytes(self, rows: np.ndarray, width: int) -> np.ndarray:
        """Take that many bytes of each row, at most 16; return them, rows x width."""
        starts, _ = self.take(rows, width)
        taken: np.ndarray = self.data[starts[:, None] + np.arange(width)]
        return taken

    def slice(self, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
        """Return these ranges as binary values; each starts where the one before ends, or later."""
        count = len(starts)
        bounds = np.zeros(2 * count + 1, np.int32)
        bounds[:-1:2], bounds[1::2] = starts, ends
        bounds[-1] = ends[-1] if count else 0
        between = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(self.data)])
        return between.take(pa.array(np.arange(0, 2 * count, 2)))
