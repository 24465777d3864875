"""The intact lines of one window's files, a row each, without their bytes: what a repair keeps of them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from onceover.lines.line_format import LEFT_OUT
from onceover.lines.ranges import number_sources
from onceover.lines.read import Lines


@dataclass(frozen=True, slots=True)
class WindowLines:
    """Intact lines, of text or of a compacted file, an element a line in each array; `corrupt` counts the other lines.

    `source` numbers generation and Kafka partition; `epoch` is the leader epoch, negative where the broker gave none;
    `content` (n x 4, uint32) is the XXH3-128 that the digest sums,
    `hash` the line's XXH3-64. `contract` indexes `contracts`. `has_columns` is False where VALUE alone gives a line's
    columns.
    """

    source: np.ndarray
    offset: np.ndarray
    epoch: np.ndarray
    event_ms: np.ndarray
    content: np.ndarray
    hash: np.ndarray
    contract: np.ndarray
    has_columns: np.ndarray
    compacted: np.ndarray
    contracts: tuple[bytes, ...]
    corrupt: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def slice(self, start: int, end: int, corrupt: int) -> WindowLines:
        """Return these lines alone, without a copy, and with that number of other lines."""
        arrays = {name: getattr(self, name)[start:end] for name in _ARRAYS}
        return WindowLines(contracts=self.contracts, corrupt=corrupt, **arrays)


_ARRAYS = tuple(each.name for each in fields(WindowLines) if each.name not in ("contracts", "corrupt"))


def hold_lines(lines: Lines, *, compacted: bool = False) -> WindowLines:
    """Return what a repair keeps of these lines, of text or of a compacted file."""
    intact = int(np.count_nonzero(lines.intact))
    rows = slice(None) if intact == len(lines) else lines.intact  # a slice takes no copy
    return WindowLines(
        source=number_sources(lines.generation[rows], lines.kafka_partition[rows]),
        offset=lines.offset[rows],
        epoch=lines.leader_epoch[rows].astype(np.int32),
        event_ms=lines.event_ms[rows],
        content=lines.parts[rows],
        hash=lines.hash[rows],
        contract=lines.contract[rows],
        has_columns=~_find_left_out(lines, rows),
        compacted=np.full(intact, compacted),
        contracts=lines.contracts,
        corrupt=len(lines) - intact,
    )


def concatenate(parts: Sequence[WindowLines]) -> WindowLines:
    """Return the lines of all parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    contracts = tuple(dict.fromkeys(name for part in parts for name in part.contracts))
    places = {name: place for place, name in enumerate(contracts)}
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS if name != "contract"}
    numbers = [np.array([places[name] for name in part.contracts], np.int32) for part in parts]
    contract = np.concatenate([of[part.contract] for of, part in zip(numbers, parts, strict=True)])
    return WindowLines(contract=contract, contracts=contracts, corrupt=sum(part.corrupt for part in parts), **arrays)


def _find_left_out(lines: Lines, rows: np.ndarray | slice) -> np.ndarray:
    """Return where the one column says that the columns were left out."""
    octets, start = np.frombuffer(lines.data, np.uint8), lines.columns_start[rows]
    left_out: np.ndarray = (lines.columns[rows] == 1) & (lines.columns_end[rows] - start == len(LEFT_OUT))
    at = start[left_out]
    left_out[left_out] = (octets[at] == LEFT_OUT[0]) & (octets[at + 1] == LEFT_OUT[1])
    return left_out
