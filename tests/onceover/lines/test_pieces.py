"""Pieces of landings: no bound is inside one, and each is held by the landings that its owner says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onceover.lines.pieces import SEVERAL, UNLANDED, LandedRanges, cut_pieces
from onceover.lines.ranges import NumberedRanges, number_source
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange

SOURCES = [KafkaPartition("00000000", 0), KafkaPartition("ffffffff", 99_999)]
LAST = LARGEST_END - 9


@st.composite
def ranges(draw: st.DrawFn) -> OffsetRange:
    base, start, size = draw(st.sampled_from([0, LAST])), draw(st.integers(0, 8)), draw(st.integers(0, 9))
    return OffsetRange(draw(st.sampled_from(SOURCES)), base + start, base + min(start + size, 9))


@given(
    st.lists(ranges(), max_size=5),
    st.dictionaries(st.sampled_from(SOURCES), st.sets(st.integers(0, 8)), max_size=2),
    st.sets(st.tuples(st.sampled_from(SOURCES), st.integers(0, 8)), max_size=2),
)
def test_each_offset_is_in_the_piece_of_its_landings(
    landed: list[OffsetRange], exact: dict[KafkaPartition, set[int]], decided: set[tuple[KafkaPartition, int]]
) -> None:
    rows = [(n, r.source, r.start, r.end, 0) for n, r in enumerate(landed)]
    rows += [(len(landed), source, n, n + 1, 1) for source, offsets in exact.items() for n in offsets]
    table = np.array([(n, number_source(s), *rest) for n, s, *rest in rows], np.int64).reshape(-1, 5).T
    singles = [OffsetRange(source, n, n + 1) for source, n in sorted(decided)]
    pieces = cut_pieces(
        LandedRanges(table[0], table[1], table[2], table[3], table[4].astype(bool)),
        NumberedRanges.of((each, n) for n, each in enumerate(singles)),
    )
    bounds = {(s, at) for _, s, start, end, _ in rows for at in (start, end)}
    bounds |= {(each.source, at) for each in singles for at in (each.start, each.end)}
    of_exact: dict[KafkaPartition, set[int]] = {}
    place = -1
    for source in SOURCES:
        before: set[int] = set()
        for offset in (*range(9), *range(LAST, LARGEST_END)):
            holders = {n for n, s, start, end, _ in rows if s == source and start <= offset < end}
            is_decided = (source, offset) in decided
            is_piece = bool(holders) or is_decided
            if is_piece and ((source, offset) in bounds or not before):
                place += 1
            found = int(pieces.ranges.find(np.array([number_source(source)]), np.array([offset]))[0])
            assert (found >= 0) == is_piece
            if is_piece:
                owner = SEVERAL if len(holders) > 1 else min(holders, default=UNLANDED)
                assert (pieces.owner[place], pieces.is_decided[place]) == (owner, is_decided)
                if owner == len(landed) and not is_decided:
                    of_exact.setdefault(source, set()).add(found)
                else:
                    assert found == place
            before = holders
    assert len(pieces) == place + 1
    assert all(len(found) == 1 for found in of_exact.values())
