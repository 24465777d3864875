"""Windows packed into tasks by their bytes: few enough to start quickly, and about as long as each other."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

TASK_BYTES: Final = 128 * 1024 * 1024
OPENING: Final = 256 * 1024
"""Bytes that could be read while a file is opened."""


def pack(sizes: Sequence[int], cores: int, most: int = TASK_BYTES, opening: int = OPENING) -> list[list[int]]:
    """Return the places of the sizes, each in one task, in order. Tasks have `most` bytes on average at most, and each
    core gets as many, so that none is idle at the end; one larger size is a task of its own. The largest comes
    first."""
    weights = [size + opening for size in sizes]
    rounds = max(-(-sum(weights) // (most * cores)), 1)
    tasks = min(len(weights), rounds * cores)
    loads = [(0, number) for number in range(tasks)]
    packed: list[list[int]] = [[] for _ in range(tasks)]
    for place in sorted(range(len(weights)), key=lambda each: (-weights[each], each)):
        load, number = heapq.heappop(loads)
        packed[number].append(place)
        heapq.heappush(loads, (load + weights[place], number))
    largest_first = sorted(loads, key=lambda each: (-each[0], each[1]))
    return [sorted(packed[number]) for _, number in largest_first]
