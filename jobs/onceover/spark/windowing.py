"""The window of a record in Spark SQL, from the same pieces as everywhere: Spark's own time zone data dates nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceover.model.windowing import Windowing

_SLOT_BITS: Final = 31
"""Of ms, some 25 days: in a slot of these, few pieces begin."""


def find_window(windowing: Windowing, event_ms: str = "event_ms") -> Column:
    """Return the start of the window that holds a time, both in ms; null for null."""
    pieces, at = windowing.pieces, F.col(event_ms)
    if len(pieces.firsts) == 1:
        return at - F.pmod(at - F.lit(pieces.firsts[0]), F.lit(pieces.length))
    slots = range((pieces.firsts[-1] >> _SLOT_BITS) + 2)
    places = [max(bisect_right(pieces.firsts, slot << _SLOT_BITS), 1) for slot in slots]  # from 1, as SQL counts
    slot = F.least(F.shiftright(F.greatest(at, F.lit(0)), _SLOT_BITS), F.lit(len(slots) - 1)).cast("int")
    most = max(after - before for before, after in pairwise(places))
    place, firsts = F.element_at(_list(places, "int"), slot + 1), _list([*pieces.firsts, *[1 << 62] * most], "bigint")
    begun = sum(((at >= F.element_at(firsts, place + n)).cast("int") for n in range(1, most + 1)), F.lit(0))
    found = place + begun
    first = F.element_at(firsts, found)
    return F.least(F.element_at(_list(pieces.lasts, "bigint"), found), at - F.pmod(at - first, F.lit(pieces.length)))


def _list(numbers: Sequence[int], kind: str) -> Column:
    """Return a literal array: the optimizer folds it, where one of single literals is a call to the JVM each."""
    return F.split(F.lit(",".join(map(str, numbers))), ",").cast(f"array<{kind}>")
