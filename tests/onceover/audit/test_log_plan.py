from __future__ import annotations

from onceover.audit.log_plan import is_cut_short, is_log_whole, list_before_origin, plan_log
from onceover.audit.store import LedgerStatement
from onceover.kafka.topic import TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange

P0, P1 = KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)
FACTS = TopicFacts("t", "id", "00000001", earliest={0: 10}, end={0: 100})


def of(start: int, end: int, source: KafkaPartition = P0) -> OffsetRange:
    return OffsetRange(source, start, end)


def state(
    origin: int = 20, reach: int = 80, begun: tuple[OffsetRange, ...] = (), unreadable: tuple[OffsetRange, ...] = ()
) -> LedgerStatement:
    return LedgerStatement({}, {P0: origin}, {P0: reach}, begun, (), (), unreadable, (), False)


def test_plan_reads_from_the_log_start_without_a_marker() -> None:
    plan = plan_log(FACTS, state(), {})
    assert (plan.to_audit, plan.to_read) == ((of(10, 80),), (of(80, 100),))


def test_plan_begins_at_the_smaller_origin_of_ledger_and_marker() -> None:
    assert plan_log(FACTS, state(), {P0: 30}).to_audit == (of(20, 80),)
    assert plan_log(FACTS, state(), {P0: 15}).to_audit == (of(15, 80),)
    assert plan_log(FACTS, state(), {P0: 5}).to_audit == (of(10, 80),)


def test_plan_leaves_begun_batches_and_unreadable_offsets_out() -> None:
    plan = plan_log(FACTS, state(begun=(of(5, 15), of(75, 90)), unreadable=(of(40, 41),)), {})
    assert plan.to_audit == (of(15, 40), of(41, 75))
    assert plan.to_read == (of(10, 15), of(75, 100))


def test_plan_of_an_unknown_partition_leaves_all_to_ingest() -> None:
    facts = TopicFacts("t", "id", "00000001", earliest={0: 0, 1: 3}, end={0: 0, 1: 9})
    plan = plan_log(facts, state(origin=0, reach=0), {})
    assert (plan.to_audit, plan.to_read) == ((), (of(3, 9, P1),))


def test_plan_of_a_cut_log_ends_at_its_end() -> None:
    facts = TopicFacts("t", "id", "00000001", earliest={0: 0}, end={0: 50})
    assert plan_log(facts, state(), {}).to_audit == (of(0, 50),)


def test_expired_offsets_are_no_longer_held() -> None:
    plan = plan_log(FACTS, state(begun=(of(30, 40),)), {})
    later = TopicFacts("t", "id", "00000001", earliest={0: 35}, end={0: 100})
    assert plan.list_still_held(later) == [of(40, 80)]


def test_origin_is_the_smallest_of_ledger_marker_and_raw() -> None:
    assert list_before_origin(state(), {P0: 30}, {P0: 0, P1: 7}) == [of(0, 0), of(0, 7, P1)]
    assert list_before_origin(state(), {P0: 12}, {}) == [of(0, 12)]


def test_log_is_whole_from_offset_zero_or_the_marked_origin() -> None:
    assert not is_log_whole(FACTS, state(), {}), "the ledger's origin may be that of a ledger that came back empty"
    assert not is_log_whole(FACTS, state(), {P0: 9})
    assert is_log_whole(FACTS, state(), {P0: 10})
    assert is_log_whole(TopicFacts("t", "id", "00000001", earliest={0: 0}, end={0: 5}), state(), {})
    assert not is_log_whole(FACTS, state(), {P0: 10, KafkaPartition("00000002", 0): 0})


def test_marked_origin_within_the_log_cuts_the_reading_short() -> None:
    assert is_cut_short(FACTS, {P0: 11})
    assert not is_cut_short(FACTS, {P0: 10})
    assert not is_cut_short(FACTS, {})
