from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from onceover.errors import LandingMismatchError, TerminalError
from onceover.model.batch import Landing, LandingPart, RangeRead, require_all_landed
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

HOUR = datetime(2013, 1, 1, 5, tzinfo=UTC)
P0, P1 = KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)


def landing(*parts: LandingPart, quarantined: bool = False) -> Landing:
    return Landing(None if quarantined else HOUR, date(2026, 1, 1) if quarantined else None, 0, 10, True, parts)


def test_landings_and_quarantine_must_add_up_to_the_reading() -> None:
    read = [RangeRead(OffsetRange(P0, 0, 9), Digest(3, 6), None), RangeRead(OffsetRange(P1, 0, 9), Digest(1, 9), None)]
    good = [landing(LandingPart(P0, Digest(2, 4)), LandingPart(P1, Digest(1, 9)))]
    rest = landing(LandingPart(P0, Digest(1, 2)), quarantined=True)
    require_all_landed(read, [*good, rest])
    with pytest.raises(LandingMismatchError, match=r"00000001-0: the reader delivered 3 records"):
        require_all_landed(read, good)


@pytest.mark.parametrize("digests", [[Digest(1, 6)], []], ids=["another digest", "unread"])
def test_records_that_were_not_read_are_refused(digests: list[Digest]) -> None:
    read = [RangeRead(OffsetRange(P0, 0, 9), digest, None) for digest in digests]
    with pytest.raises(LandingMismatchError):
        require_all_landed(read, [landing(LandingPart(P0, Digest(1, 7)))])


def test_range_without_records_needs_no_landing() -> None:
    require_all_landed([RangeRead(OffsetRange(P0, 0, 9), Digest(), None)], [])


def test_reading_with_more_records_than_offsets_is_refused() -> None:
    with pytest.raises(TerminalError):
        RangeRead(OffsetRange(P0, 0, 2), Digest(3), None)


@pytest.mark.parametrize(("end", "parts"), [(4, (LandingPart(P0, Digest(1)),)), (9, ())], ids=["reversed", "no part"])
def test_landing_without_records_or_reversed_is_refused(end: int, parts: tuple[LandingPart, ...]) -> None:
    with pytest.raises(TerminalError, match="empty"):
        Landing(HOUR, None, 5, end, True, parts)
