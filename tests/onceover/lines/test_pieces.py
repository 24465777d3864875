"""Pieces of landings: no bound is inside one, and each is held by the landings that its owner says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onceover.lines.pieces import SEVERAL, LandedRanges, cut_pieces
from onceover.lines.ranges import number_source
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange

SOURCES = [KafkaPartition("00000000", 0), KafkaPartition("ffffffff", 99_999)]
EPOCHS = (NO_EPOCH, 0, 2**31 - 1)
LAST = LARGEST_END - 9
Stretch = tuple[KafkaPartition, int]  # a Kafka partition's records of one leader epoch


@st.composite
def spans(draw: st.DrawFn) -> EpochSpan:
    base, start, size = draw(st.sampled_from([0, LAST])), draw(st.integers(0, 8)), draw(st.integers(0, 9))
    offsets = OffsetRange(draw(st.sampled_from(SOURCES)), base + start, base + min(start + size, 9))
    return EpochSpan(offsets, draw(st.sampled_from(EPOCHS)))


@given(
    st.lists(spans(), max_size=6),
    st.dictionaries(
        st.tuples(st.sampled_from(SOURCES), st.sampled_from(EPOCHS)), st.sets(st.integers(0, 8)), max_size=3
    ),
)
def test_each_record_is_in_the_piece_of_its_landings(landed: list[EpochSpan], exact: dict[Stretch, set[int]]) -> None:
    rows = [(n, s.offsets.source, s.offsets.start, s.offsets.end, s.leader_epoch, 0) for n, s in enumerate(landed)]
    rows += [(len(landed), source, n, n + 1, epoch, 1) for (source, epoch), found in exact.items() for n in found]
    table = np.array([(n, number_source(s), *rest) for n, s, *rest in rows], np.int64).reshape(-1, 6).T
    landing, at, start_of, end_of, epochs, is_exact = table
    pieces = cut_pieces(LandedRanges(landing, at, start_of, end_of, epochs, is_exact.astype(bool)))
    bounds = {(s, epoch, at) for _, s, start, end, epoch, _ in rows for at in (start, end)}
    of_exact: dict[Stretch, set[int]] = {}
    place = -1
    for epoch, source in ((epoch, source) for epoch in EPOCHS for source in SOURCES):
        before: set[int] = set()
        number = number_source(source)
        for offset in (*range(9), *range(LAST, LARGEST_END)):
            holders = {n for n, s, start, end, at, _ in rows if (s, at) == (source, epoch) and start <= offset < end}
            if holders and ((source, epoch, offset) in bounds or not before):
                place += 1
            of_one = (np.array([each]) for each in (number, offset, epoch))
            found = int(pieces.ranges.find(*of_one)[0])
            assert (found >= 0) == bool(holders)
            if holders:
                owner = min(holders) if len(holders) == 1 else SEVERAL
                assert (pieces.owner[place], pieces.source[place], pieces.epoch[place]) == (owner, number, epoch)
                assert pieces.start[place] <= offset < pieces.end[place]
                if owner == len(landed):
                    of_exact.setdefault((source, epoch), set()).add(found)
                else:
                    assert found == place
            before = holders
    assert len(pieces) == place + 1
    assert all(len(found) == 1 for found in of_exact.values())
