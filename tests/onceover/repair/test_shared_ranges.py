"""The offsets whose IDs can count in two windows, beside a count of each offset's batches."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import EMPTY
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.release import Release
from onceover.repair.shared_ranges import find_shared

START = datetime(2026, 3, 1, tzinfo=UTC)
SOURCES = [KafkaPartition("5f3a0b1c", 0), KafkaPartition("5f3a0b1c", 1)]
RANGES = st.builds(
    lambda source, start, length: OffsetRange(source, start, start + length),
    st.sampled_from(SOURCES), st.integers(0, 12), st.integers(1, 6),
)  # fmt: skip
BATCHES = st.lists(st.lists(RANGES, min_size=1, max_size=3), max_size=6)


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCES[0], start, end)


def claim(*landings: ClaimedLanding, minute: int = 0) -> ClaimedWindow:
    start = START + timedelta(minutes=minute)
    return ClaimedWindow(1, start, start + timedelta(minutes=5), UUID(int=1), 1, landings, None)


@given(BATCHES)
def test_shared_offsets_are_those_of_two_batches(batches: list[list[OffsetRange]]) -> None:
    windows = [
        claim(*(ClaimedLanding(10 * minute + n, (), None, coalesce(ids), n) for n, ids in enumerate(batches)),
              minute=5 * minute)
        for minute in range(2)
    ]  # fmt: skip
    batches_of = Counter(
        (piece.source, offset) for ids in batches for piece in coalesce(ids) for offset in range(piece.start, piece.end)
    )
    found = {(piece.source, offset) for piece in find_shared(windows) for offset in range(piece.start, piece.end)}
    assert found == {each for each, number in batches_of.items() if number > 1}


def test_batch_over_two_windows_shares_nothing_with_itself() -> None:
    first, second = (ClaimedLanding(n, ((of(0, 10), EMPTY),), batch_id=7) for n in (1, 2))
    assert find_shared([claim(first), claim(second, minute=5)]) == ()
    replayed = ClaimedLanding(3, ((of(4, 20), EMPTY),), batch_id=8)
    assert find_shared([claim(first), claim(second, replayed, minute=5)]) == (of(4, 10),)


def test_release_shares_its_ids_with_the_batch_that_read_them() -> None:
    read = ClaimedLanding(1, ((of(0, 10), EMPTY),), batch_id=7)
    released = ClaimedLanding(2, ((of(3, 9), EMPTY),), Release(8, 1, (of(3, 4), of(8, 9))), batch_id=8)
    assert find_shared([claim(read), claim(released, minute=5)]) == (of(3, 4), of(8, 9))


def test_landings_of_unknown_batches_are_of_different_ones() -> None:
    landings = [ClaimedLanding(n, ((of(0, 10), EMPTY),)) for n in (1, 2)]
    assert find_shared([claim(*landings)]) == (of(0, 10),)
