"""Bytes of a window file to arrays: each line's position, ID, hashes and fields, and whether it is intact.

    newlines, TABs -> bounds of lines and fields -> XXH3-64 checked -> fixed fields parsed -> XXH3-128 of the content

Nothing that a file holds raises: a torn, damaged or foreign line is a line that is not intact.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from onceover.lines.digits import are_all, parse_decimal, parse_hex
from onceover.lines.hashes import hash_contents, hash_lines
from onceover.lines.line_format import (
    CONTRACT,
    FIELDS_BEFORE_COLUMNS,
    MAX_EPOCH,
    NO_EVENT_TIME,
    NO_LINE_EPOCH,
    PREFIX_BYTES,
)
from onceover.lines.views import gather

_HASH_DIGITS = 16
_EVENT_DIGITS, _EPOCH_DIGITS = len(NO_EVENT_TIME), len(NO_LINE_EPOCH)
_LONGEST_CONTRACT = len("V123456789-") + 16
_LARGEST = np.uint64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of `data`, an element a line in each array, in the file's order. Empty lines are left out.

    Where `intact` is False, only `start` and `end` mean anything. `generation` is the number that its 8 hex digits
    write; `event_ms` is -1 in quarantine, `leader_epoch` -1 where the broker gave none; `contract` indexes `contracts`;
    `parts` (n x 4) is what the line adds to a digest. A line's content ends at `content_end`; its `columns` columns lie
    in [`columns_start`, `columns_end`).
    """

    data: memoryview
    start: np.ndarray
    end: np.ndarray
    intact: np.ndarray
    generation: np.ndarray
    kafka_partition: np.ndarray
    offset: np.ndarray
    event_ms: np.ndarray
    leader_epoch: np.ndarray
    hash: np.ndarray
    parts: np.ndarray
    contract: np.ndarray
    contracts: tuple[bytes, ...]
    content_end: np.ndarray
    columns: np.ndarray
    columns_start: np.ndarray
    columns_end: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def select(self, rows: np.ndarray) -> Lines:
        """Return these lines alone, which are in order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _ARRAYS})


_ARRAYS = tuple(each.name for each in fields(Lines) if each.name not in ("data", "contracts"))


def read(data: memoryview) -> Lines:
    """Return the lines of these bytes, the last one too if no newline ends it."""
    octets = np.frombuffer(data, np.uint8)
    start, end, tabs, first, after = _find_lines(octets)

    rows = np.flatnonzero(after - first >= FIELDS_BEFORE_COLUMNS)
    begin, last = first[rows], tabs[after[rows] - 1]
    tab = [tabs[begin + number] for number in range(FIELDS_BEFORE_COLUMNS)]
    framed = (tab[0] - start[rows] == PREFIX_BYTES) & (end[rows] - last == 1 + _HASH_DIGITS)
    framed &= (tab[4] - tab[3] == 1 + _EVENT_DIGITS) & (tab[5] - tab[4] == 1 + _EPOCH_DIGITS)
    rows, last, *tab = _take(framed, rows, last, *tab)

    written, is_hash = parse_hex(gather(data, last + 1, _HASH_DIGITS))
    proved = is_hash & (hash_lines(data, start[rows], last) == written)
    rows, last, written, *tab = _take(proved, rows, last, written, *tab)

    prefix = _Prefix(gather(data, start[rows], PREFIX_BYTES))
    fields = gather(data, tab[3] + 1, _EVENT_DIGITS + 1 + _EPOCH_DIGITS)
    event_ms, is_event = _parse_known(fields[:, :_EVENT_DIGITS])
    leader_epoch, is_epoch = _parse_known(fields[:, _EVENT_DIGITS + 1 :])
    contract, contracts = _match_contracts(data, tab[5] + 1, tab[6])
    columns = after[rows] - first[rows] - FIELDS_BEFORE_COLUMNS
    are_right = prefix.valid & is_event & is_epoch & (leader_epoch <= MAX_EPOCH) & (contract >= 0)
    are_right &= (event_ms >= 0) | (columns == 1)
    intact = np.zeros(len(start), bool)
    intact[rows] = are_right

    def spread(values: np.ndarray) -> np.ndarray:
        if len(rows) == len(start):
            return values
        whole = np.zeros((len(start), *values.shape[1:]), values.dtype)
        whole[rows] = values
        return whole

    return Lines(
        data, start, end, intact,
        generation=spread(prefix.generation),
        kafka_partition=spread(prefix.kafka_partition),
        offset=spread(prefix.offset),
        event_ms=spread(event_ms),
        leader_epoch=spread(leader_epoch),
        hash=spread(written),
        parts=spread(hash_contents(data, start[rows], tab[3])),
        contract=spread(contract),
        contracts=contracts,
        content_end=spread(tab[3]),
        columns=spread(columns),
        columns_start=spread(tab[6] + 1),
        columns_end=spread(last),
    )  # fmt: skip


class _Prefix:
    """The fixed fields of lines, from a matrix of their first 55 bytes; `valid` where they are as `frame` writes."""

    def __init__(self, octets: np.ndarray) -> None:
        generation, is_generation = parse_hex(octets[:, 0:8])
        kafka_partition, is_partition = parse_decimal(octets[:, 9:14])
        offset, is_offset = parse_decimal(octets[:, 15:34])
        stamp, is_stamp = parse_decimal(octets[:, 36:55])
        below_zero = octets[:, 35] == ord("-")
        self.generation, self.kafka_partition = generation.astype(np.int64), kafka_partition.astype(np.int32)
        self.offset = offset.view(np.int64)
        stamp_fits = np.where(below_zero, (stamp > 0) & (stamp <= _LARGEST + 1), stamp <= _LARGEST)
        self.valid = (
            is_generation & is_partition & is_offset & is_stamp
            & (octets[:, 8] == ord("-")) & (octets[:, 14] == ord("-")) & (octets[:, 34] == ord(" "))
            & (offset < _LARGEST) & (below_zero | (octets[:, 35] == ord("0"))) & stamp_fits
        )  # fmt: skip


def _find_lines(octets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return start and end of each line that is not empty, all TABs and newlines, and by their places there the first
    TAB at or after each line's start and the first one after its end."""
    is_end = octets == ord("\t")
    is_end |= octets == ord("\n")
    places = np.flatnonzero(is_end)
    newlines = np.flatnonzero(octets[places] == ord("\n"))
    at = places[newlines]
    start, end = np.concatenate(([0], at + 1)), np.concatenate((at, [len(octets)]))
    first, after = np.concatenate(([0], newlines + 1)), np.concatenate((newlines, [len(places)]))
    filled = end > start
    return start[filled], end[filled], places, first[filled], after[filled]


def _take(wanted: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the wanted rows of the columns; without a copy if they are all."""
    return columns if wanted.all() else tuple(column[wanted] for column in columns)


def _parse_known(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers, -1 for nothing but dashes, and whether each is one of both."""
    numbers, is_number = parse_decimal(digits)
    if is_number.all():
        return numbers.view(np.int64), is_number
    is_unknown = are_all(digits == ord("-"))
    return np.where(is_unknown, -1, numbers.view(np.int64)), np.asarray(is_number | is_unknown)


def _match_contracts(data: memoryview, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, tuple[bytes, ...]]:
    """Return for each line the place of its contract among the returned ones; -1 if its field names none."""
    if not len(start):
        return np.empty(0, np.int32), ()
    first = bytes(data[start[0] : min(end[0], start[0] + _LONGEST_CONTRACT)])
    if CONTRACT.fullmatch(first) and (end - start == len(first)).all():  # nearly always all lines have one contract
        fields = gather(data, start, len(first))
        if (fields == np.frombuffer(first, np.uint8)).all():
            return np.zeros(len(start), np.int32), (first,)
    places: dict[bytes, int] = {}
    bounds = zip(start.tolist(), np.minimum(end, start + _LONGEST_CONTRACT + 1).tolist(), strict=True)
    names = [bytes(data[a:b]) for a, b in bounds]
    for name in names:
        if name not in places and CONTRACT.fullmatch(name):
            places[name] = len(places)
    return np.fromiter((places.get(name, -1) for name in names), np.int32, len(names)), tuple(places)
