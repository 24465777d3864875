from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onceover.model.batch_plan import plan_ranges
from onceover.model.contract import Cutovers
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce

GENERATION = "0badcafe"
ONE, OTHER, ANEW = (KafkaPartition(g, p) for g, p in ((GENERATION, 0), (GENERATION, 1), ("0badcaff", 0)))
# Offsets read of a Kafka partition, or a migration (None). A Kafka partition is known once something of it was read.
histories = st.lists(st.none() | st.tuples(st.sampled_from((ONE, OTHER, ANEW)), st.integers(1, 5)), max_size=30)


def after(history: list[tuple[KafkaPartition, int] | None]) -> tuple[Cutovers, dict[tuple[KafkaPartition, int], int]]:
    """The cutovers that a history leaves, and by ID the version that was in force when it was read."""
    version, read = 1, {}
    ends: dict[KafkaPartition, int] = {}
    at: dict[KafkaPartition, dict[int, int]] = {}
    for step in history:
        if step is None:
            version += 1
            for source, end in ends.items():
                at.setdefault(source, {})[version] = end
        else:
            source, count = step
            first = ends.get(source, 0)
            read.update({(source, offset): version for offset in range(first, first + count)})
            ends[source] = first + count
    return Cutovers(version, at), read


@given(histories)
def test_record_keeps_the_contract_version_of_its_first_reading(
    history: list[tuple[KafkaPartition, int] | None],
) -> None:
    cutovers, read = after(history)
    assert {at: cutovers.version(*at) for at in read} == read
    assert cutovers.version(ONE, 10_000) == cutovers.newest


@given(histories, st.integers(0, 20), st.integers(1, 20))
def test_ranges_are_cut_into_pieces_of_one_version(
    history: list[tuple[KafkaPartition, int] | None], start: int, length: int
) -> None:
    cutovers, _ = after(history)
    whole = [OffsetRange(source, start, start + length) for source in (ONE, OTHER)]
    found = cutovers.cut_by_version(whole)
    assert list(found) == sorted(found)
    assert coalesce(piece for pieces in found.values() for piece in pieces) == tuple(whole)
    assert sum(len(piece) for pieces in found.values() for piece in pieces) == 2 * length
    for version, pieces in found.items():
        assert {cutovers.version(r.source, o) for r in pieces for o in range(r.start, r.end)} == {version}


@given(histories, st.integers(1, 7))
def test_backlog_is_read_in_batches_of_one_version_oldest_first(
    history: list[tuple[KafkaPartition, int] | None], most: int
) -> None:
    cutovers, _ = after(history)
    at, end, versions = {0: 0, 1: 0}, {0: 20, 1: 9}, []
    while at != end:
        ranges = plan_ranges(GENERATION, at, cutovers.limit_batch(GENERATION, at, end), most)
        (version,) = cutovers.cut_by_version(ranges)
        versions.append(version)
        at.update({r.source.kafka_partition: r.end for r in ranges})
    assert versions == sorted(versions)


def test_kafka_partition_past_the_cutover_waits_for_one_set_back() -> None:
    cutovers = Cutovers(2, {ONE: {2: 5}, OTHER: {2: 5}})
    assert cutovers.limit_batch(GENERATION, {0: 3, 1: 7}, {0: 9, 1: 9}) == {0: 5, 1: 7}
    assert cutovers.limit_batch(GENERATION, {0: 5, 1: 7}, {0: 9, 1: 9}) == {0: 9, 1: 9}


def test_pipeline_without_a_cutover_is_read_in_plain_order() -> None:
    assert Cutovers().limit_batch(GENERATION, {0: 3, 1: 9}, {0: 9, 1: 9}) == {0: 9, 1: 9}
    assert Cutovers().version(ONE, 0) == 1
