"""Set operations on offset ranges, compared with sets of offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect, subtract

PARTITIONS = [KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)]
RANGES = st.lists(
    st.builds(
        lambda source, start, size: OffsetRange(source, start, start + size),
        st.sampled_from(PARTITIONS), st.integers(0, 30), st.integers(0, 8),
    )
)  # fmt: skip


def as_set(ranges: list[OffsetRange] | tuple[OffsetRange, ...]) -> set[tuple[KafkaPartition, int]]:
    return {(piece.source, offset) for piece in ranges for offset in range(piece.start, piece.end)}


@given(RANGES, RANGES)
def test_intersection_and_difference_are_those_of_sets(some: list[OffsetRange], others: list[OffsetRange]) -> None:
    shared, rest = intersect(some, others), subtract(some, others)
    assert as_set(shared) == as_set(some) & as_set(others)
    assert as_set(rest) == as_set(some) - as_set(others)
    assert rest == coalesce(rest)
