"""The sketch of distinct values depends on the values alone: not on their order, number or parts."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from onceover.errors import TerminalError
from onceover.lines import sketches
from onceover.lines.grouping import Grouping
from onceover.model.measures import SKETCH_BYTES

GROUPING = Grouping({"m": "bit_or"}, pa.schema([("k", pa.string()), ("m", pa.binary())]))
BITS = SKETCH_BYTES * 8


def make_rows(rows: list[tuple[str | None, int | None]]) -> pa.Table:
    keys, places = zip(*rows, strict=True)
    return pa.table({"k": pa.array(keys, pa.string()), "m": pa.array(places, pa.int32())})


def read_places(groups: pa.Table) -> dict[str | None, set[int]]:
    """Return the places of the bits of each key, the lowest bit of a byte being its first."""
    found: dict[str | None, set[int]] = {}
    for key, sketch in zip(groups["k"].to_pylist(), groups["m"].to_pylist(), strict=True):
        if sketch is None:
            found[key] = set()
            continue
        assert len(sketch) == SKETCH_BYTES
        assert any(sketch)
        found[key] = set(np.flatnonzero(np.unpackbits(np.frombuffer(sketch, np.uint8), bitorder="little")).tolist())
    return found


def test_sketch_is_the_same_whatever_the_order_number_and_parts() -> None:
    draw = random.Random(3)
    for _ in range(100):
        places = [draw.choice((None, 0, 7, 8, BITS - 1, draw.randrange(BITS))) for _ in range(draw.randrange(1, 40))]
        rows = [(draw.choice((None, "", "a", "b")), place) for place in places]
        expected: dict[str | None, set[int]] = {key: set() for key, _ in rows}
        for key, place in rows:
            expected[key] |= {place} if place is not None else set()
        given = rows + draw.choices(rows, k=draw.randrange(20))
        draw.shuffle(given)
        cut = draw.randrange(len(given) + 1)
        parts = [GROUPING.group(make_rows(part)) for part in (given[:cut], given[cut:]) if part]
        draw.shuffle(parts)
        joined = GROUPING.group(pa.concat_tables([*parts, GROUPING.schema.empty_table(), parts[0]]))
        assert read_places(joined) == expected


def test_more_sketches_than_a_task_can_join_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "_MOST_SKETCHES", 2)
    assert len(GROUPING.group(make_rows([("a", 1), ("b", 2)]))) == 2
    with pytest.raises(TerminalError, match=r"3 rows each keep a sketch of 768 bytes.*fewer keys"):
        GROUPING.group(make_rows([("a", 1), ("b", 2), ("c", 3)]))


@pytest.mark.largest
def test_more_sketches_than_two_gib_join_into_few() -> None:
    one = GROUPING.group(make_rows([(str(n), n % BITS) for n in range(100_000)]))
    assert one["m"].nbytes * 28 > 2**31
    joined = GROUPING.group(pa.concat_tables([one] * 28))
    assert joined.equals(one)
