from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, span_sources

P0, P1 = KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)
bounds = st.tuples(st.integers(0, 60), st.integers(0, 12))
ranges = st.lists(st.builds(lambda p, b: OffsetRange(p, b[0], b[0] + b[1]), st.sampled_from([P0, P1]), bounds))


def offsets(pieces: tuple[OffsetRange, ...] | list[OffsetRange], source: KafkaPartition) -> set[int]:
    return {o for r in pieces if r.source == source for o in range(r.start, r.end)}


@given(ranges)
def test_coalescing_keeps_every_offset_and_leaves_none_adjacent(pieces: list[OffsetRange]) -> None:
    joined = coalesce(pieces)
    for source in (P0, P1):
        assert offsets(joined, source) == offsets(pieces, source)
    assert all(a.source != b.source or a.end < b.start for a, b in itertools.pairwise(joined))


def test_ranges_of_different_generations_never_join_or_overlap() -> None:
    other = KafkaPartition("00000002", 0)
    assert not OffsetRange(P0, 0, 5).overlaps(OffsetRange(other, 0, 5))
    assert len(coalesce([OffsetRange(P0, 0, 5), OffsetRange(other, 5, 9)])) == 2


def test_touching_ranges_do_not_overlap() -> None:
    assert not OffsetRange(P0, 0, 5).overlaps(OffsetRange(P0, 5, 9))
    assert OffsetRange(P0, 0, 5).overlaps(OffsetRange(P0, 4, 9))


@pytest.mark.parametrize(("generation", "number"), [("ABCDEF01", 0), ("0000001", 0), ("0000000g", 0), ("00000001", -1),
                                                    ("00000001", 100_000)])  # fmt: skip
def test_kafka_partition_too_large_for_an_id_is_refused(generation: str, number: int) -> None:
    with pytest.raises(UsageError):
        KafkaPartition(generation, number)


def test_reversed_range_is_refused() -> None:
    with pytest.raises(UsageError, match="reversed"):
        OffsetRange(P0, 5, 4)


def test_span_of_each_kafka_partition_reaches_its_largest_end() -> None:
    pieces = [OffsetRange(P1, 5, 6), OffsetRange(P0, 3, 9), OffsetRange(P0, 1, 2), OffsetRange(P0, 4, 5)]
    assert span_sources(pieces) == [OffsetRange(P0, 1, 9), OffsetRange(P1, 5, 6)]
