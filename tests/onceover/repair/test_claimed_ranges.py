"""The ranges of landings by leader epoch, and Kafka partitions of which one landing lacks it."""

from __future__ import annotations

from onceover.model.claim import ClaimedLanding
from onceover.model.digest import EMPTY
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.release import Release
from onceover.repair.claimed_ranges import BLIND, find_blind, list_readings

P0, P1 = KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)
FIRST, SECOND, OTHER = OffsetRange(P0, 0, 4), OffsetRange(P0, 4, 10), OffsetRange(P1, 0, 7)
PARTS = ((OffsetRange(P0, 0, 10), EMPTY), (OTHER, EMPTY))
KNOWN = ClaimedLanding(1, PARTS, spans=(EpochSpan(FIRST, 1), EpochSpan(SECOND, 2), EpochSpan(OTHER, 5)))
PARTLY = ClaimedLanding(2, PARTS, spans=(EpochSpan(FIRST, 1), EpochSpan(SECOND, None), EpochSpan(OTHER, 5)))
RELEASED = ClaimedLanding(3, PARTS[:1], Release(9, 1, (FIRST, SECOND)))


def test_one_landing_without_an_epoch_makes_its_partition_blind() -> None:
    assert find_blind((KNOWN, RELEASED)) == frozenset()
    assert find_blind((KNOWN, PARTLY)) == {P0}
    assert find_blind((ClaimedLanding(4, PARTS[1:]), KNOWN)) == {P1}


def test_readings_have_their_epoch_but_for_blind_partitions() -> None:
    assert list_readings(KNOWN, ()) == [(FIRST, 1), (SECOND, 2), (OTHER, 5)]
    assert list_readings(KNOWN, {P0}) == [(FIRST, BLIND), (SECOND, BLIND), (OTHER, 5)]
    assert list_readings(ClaimedLanding(4, PARTS, exact=(FIRST, OTHER)), ()) == [(FIRST, BLIND), (OTHER, BLIND)]
    assert list_readings(ClaimedLanding(4, PARTS), ()) == [(offsets, BLIND) for offsets, _ in PARTS]
