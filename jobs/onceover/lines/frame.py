"""Records to lines, in arrays: the bytes to append, and what each line contributes to the digest.

    Arrow columns -> escaped fields, joined -> XXH3-128 of the content -> the other fields -> XXH3-64

All work on bytes is done on whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.errors import UsageError
from onceover.lines.escapes import ESCAPES, NULL
from onceover.lines.hashes import hash_contents, hash_lines
from onceover.lines.line_format import (
    LEFT_OUT,
    LONGEST_COLUMNS,
    MAX_EVENT_MS,
    NO_EVENT_TIME,
    NO_LINE_EPOCH,
    PREFIX_BYTES,
)

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_FOUR_DIGITS = np.array([b"%04d" % number for number in range(10_000)]).view("V4")


@dataclass(frozen=True, slots=True)
class Framed:
    """Lines in the order of their records.

    `text` holds each line with its newline; line n begins at `bounds[n]` and ends at `bounds[n + 1]`. `parts` (n x 4,
    uint32) are what each adds to a digest.
    """

    text: memoryview
    bounds: np.ndarray
    parts: np.ndarray


def frame_content(
    content: pa.Array, event_ms: pa.Array, leader_epoch: pa.Array, contract: str, columns: Sequence[pa.Array]
) -> Framed:
    """Return the lines of records, at least one, of this `content`, and of one contract. Lines equal
    `line_format.encode`, byte for byte.

    Takes `event_ms` and `leader_epoch` as integers (null in quarantine; null or negative if the broker gave none), and
    `columns` as strings or binary. Raises UsageError for an event time that is wider than its field.
    """
    contract_field = pa.repeat(pa.scalar(contract.encode(), pa.binary()), len(content))
    fields = [_format_columns(columns)] if columns else []
    body = join_fields(content, format_time_and_epoch(event_ms, leader_epoch), contract_field, *fields)
    text = join_fields(body, as_binary(_format_hash(hash_lines(*_spread(body)))))
    bounds = _bounds(text)
    return Framed(get_data(text), bounds - bounds[0], hash_content(content))


def hash_records(records: pa.RecordBatch, generation: str) -> np.ndarray:
    """Return what each of these records of one generation adds to a digest (n x 4, uint32)."""
    return hash_content(add_value(join_head(records, generation), records.column("value")))


def join_head(records: pa.RecordBatch, generation: str) -> pa.Array:
    """Return the bytes before VALUE of each of these records of one generation."""
    return join_fields(
        _format_prefix(records, generation),
        _escape_nullable(records.column("key")),
        pc.fill_null(records.column("headers").cast(pa.binary()), b""),
    )


def add_value(head: pa.Array, value: pa.Array) -> pa.Array:
    """Return the bytes that the digest covers, from those before VALUE."""
    return join_fields(head, _escape_nullable(value))


def hash_content(content: pa.Array) -> np.ndarray:
    """Return what these contents add to a digest, as `hash_contents` does."""
    return hash_contents(*_spread(content))


def format_digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Return the decimal digits of numbers that are not negative, zero-padded, as ASCII: n x `width`."""
    fours = np.empty((len(numbers), -(-width // 4)), _FOUR_DIGITS.dtype)
    rest = numbers.astype(np.uint64)
    for place in range(fours.shape[1] - 1, -1, -1):
        more = rest // np.uint64(10_000)
        fours[:, place] = _FOUR_DIGITS[rest - more * np.uint64(10_000)]
        rest = more
    digits = fours.view(np.uint8)
    missing = digits.shape[1] - width
    if rest.any() or (digits[:, :missing] != ord("0")).any():
        raise UsageError(f"{numbers.max()} is wider than {width} digits")
    return digits[:, missing:]


def _format_prefix(records: pa.RecordBatch, generation: str) -> pa.Array:
    rows = records.num_rows
    prefix = np.full((rows, PREFIX_BYTES), ord("-"), np.uint8)
    prefix[:, :8] = np.frombuffer(generation.encode(), np.uint8)
    prefix[:, 9:14] = format_digits(records.column("kafka_partition").to_numpy(), 5)
    prefix[:, 15:34] = format_digits(records.column("offset").to_numpy(), 19)
    prefix[:, 34] = ord(" ")
    stamps = records.column("kafka_timestamp").to_numpy()
    # -2^63 has no positive counterpart in 64 bits with a sign: the two's complement has one without.
    magnitude = np.where(stamps < 0, -stamps.view(np.uint64), stamps.view(np.uint64))
    prefix[:, 35:] = format_digits(magnitude, 20)
    prefix[stamps < 0, 35] = ord("-")
    return as_binary(prefix)


def format_time_and_epoch(event_ms: pa.Array, leader_epoch: pa.Array) -> pa.Array:
    """Return the two fields of each line: 13 digits, dashes for null, and 10 digits, dashes for null and for one below
    0."""
    times, epochs = event_ms.fill_null(-1).to_numpy(), leader_epoch.fill_null(-1).to_numpy()
    in_window = times >= 0
    if times.max() > MAX_EVENT_MS or (in_window != event_ms.is_valid().to_numpy(zero_copy_only=False)).any():
        raise UsageError(f"an event time is not in 0..{MAX_EVENT_MS} ms; quarantine the record")
    fields = np.full((len(times), len(NO_EVENT_TIME) + 1 + len(NO_LINE_EPOCH)), ord("\t"), np.uint8)
    _format_known(fields[:, : len(NO_EVENT_TIME)], times, in_window)
    _format_known(fields[:, len(NO_EVENT_TIME) + 1 :], epochs, epochs >= 0)
    return as_binary(fields)


def _format_known(field: np.ndarray, numbers: np.ndarray, is_known: np.ndarray) -> None:
    """Write the digits of the known numbers, and dashes for the others."""
    width = field.shape[1]
    if is_known.all():
        field[:] = format_digits(numbers, width)
    else:
        field[is_known], field[~is_known] = format_digits(numbers[is_known], width), ord("-")


def _format_columns(columns: Sequence[pa.Array]) -> pa.Array:
    fields = [_escape_nullable(column.cast(pa.binary())) for column in columns]
    joined = join_fields(*fields)
    lengths = pc.binary_length(joined).to_numpy() - (len(fields) - 1)  # without the TABs
    if lengths.max() <= LONGEST_COLUMNS:
        return joined
    return pc.if_else(pa.array(lengths > LONGEST_COLUMNS), pa.scalar(LEFT_OUT, pa.binary()), joined)


def _format_hash(hashes: np.ndarray) -> np.ndarray:
    """Return 16 hex digits and a newline for each hash."""
    octets = hashes.astype(">u8").view(np.uint8).reshape(len(hashes), 8)
    digits = np.full((len(hashes), 17), ord("\n"), np.uint8)
    digits[:, 0:16:2], digits[:, 1:16:2] = _HEX[octets >> 4], _HEX[octets & 15]
    return digits


def _escape_nullable(field: pa.Array) -> pa.Array:
    data = bytes(get_data(field)) if field.type == pa.binary() else b""
    for plain, written in ESCAPES:
        if plain in data:
            field = pc.replace_substring(field, plain, written)
    return pc.fill_null(field, NULL) if field.null_count else field


def join_fields(*fields: pa.Array) -> pa.Array:
    """Return the fields of each line with a TAB between them."""
    return pc.binary_join_element_wise(*fields, pa.scalar(b"\t", pa.binary()))


def as_binary(rows: np.ndarray) -> pa.Array:
    """Return the rows of a matrix of bytes as a binary array that shares its memory."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    data = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _bounds(array: pa.Array) -> np.ndarray:
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def get_data(array: pa.Array) -> memoryview:
    """Return a binary array's concatenated values, as they lie in its buffer."""
    bounds, data = _bounds(array), array.buffers()[2]
    return memoryview(data or b"")[int(bounds[0]) : int(bounds[-1])]


def _spread(array: pa.Array) -> tuple[memoryview, np.ndarray, np.ndarray]:
    """Return the buffer of a binary array, and where each of its values starts and ends there."""
    bounds = _bounds(array)
    return memoryview(array.buffers()[2]), bounds[:-1], bounds[1:]
