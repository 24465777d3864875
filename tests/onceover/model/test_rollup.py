"""Which batches are joined: those that follow one another exactly, as one large batch would have read and landed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.model.batch import RangeRead
from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rollup import LONGEST, MAX_BATCHES, OldBatch, OldLanding, join_ranges, plan_rollups

ZERO, ONE = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ON_TIME, LATE = (False, False), (True, False)


def read(
    source: KafkaPartition, start: int, end: int, *, epochs: tuple[tuple[int, int], ...] | None = None
) -> RangeRead:
    found = ((0, start),) if epochs is None else epochs
    return RangeRead(OffsetRange(source, start, end), Digest(end - start, start, end), NOON, NOON, found)


def batch(n: int, *ranges: RangeRead, is_final: bool = True) -> OldBatch:
    """Return batch n, from 0: ten offsets of one Kafka partition, ten bytes, landed n seconds after noon."""
    landing = OldLanding(NOON, 10 * n, 10 * n + 10, ON_TIME)
    own = ranges or (read(ZERO, 10 * n, 10 * n + 10),)
    return OldBatch(n, 1, 1, NOON + timedelta(seconds=n), own, (landing,), is_final)


def joined(*batches: OldBatch) -> list[list[int]]:
    """Return the numbers of the batches that are joined, and close the last run by a batch that no run takes."""
    end = replace(batch(0, is_final=False), batch_id=-1)
    return [[each.batch_id for each in run] for run in plan_rollups([*batches, end])]


def test_batches_that_follow_one_another_are_joined() -> None:
    assert joined(batch(0), batch(1), batch(2)) == [[0, 1, 2]]


def test_batches_of_several_drivers_stay_apart() -> None:
    after = replace(batch(1), epoch=2)
    assert joined(batch(0), after, replace(batch(2), epoch=2)) == [[0], [1, 2]]


def test_last_batches_wait_for_those_that_follow() -> None:
    assert list(plan_rollups([batch(0), batch(1)])) == []


BREAKS = {
    "a batch that is not final": (batch(1, is_final=False), [[0], [2]]),
    "offsets between": (batch(1, read(ZERO, 11, 20)), [[0], [1, 2]]),
    "offsets that were read again": (batch(1, read(ZERO, 5, 20)), [[0], [1, 2]]),
    "bytes between": (replace(batch(1), landings=(OldLanding(NOON, 11, 20, ON_TIME),)), [[0], [1, 2]]),
    "late records": (replace(batch(1), landings=(OldLanding(NOON, 10, 20, LATE),)), [[0], [1], [2]]),
    "another contract": (replace(batch(1), contract_version=2), [[0], [1], [2]]),
    "unknown leader epochs": (batch(1, read(ZERO, 10, 20, epochs=())), [[0], [1], [2]]),
}


@pytest.mark.parametrize("what", BREAKS)
def test_batch_that_does_not_follow_exactly_ends_the_run(what: str) -> None:
    middle, expected = BREAKS[what]

    assert joined(batch(0), middle, batch(2)) == expected


def test_other_logs_and_files_do_not_end_the_run() -> None:
    other = replace(batch(1, read(ONE, 500, 510)), landings=(OldLanding(date(2026, 3, 1), 77, 99, LATE),))

    assert joined(batch(0), other, replace(batch(1), batch_id=2)) == [[0, 1, 2]]


def test_range_without_records_needs_no_epoch() -> None:
    empty = RangeRead(OffsetRange(ZERO, 10, 20), Digest(), None, None, ())

    assert joined(batch(0), batch(1, empty), batch(2)) == [[0, 1, 2]]
    (whole,) = join_ranges([*batch(0).ranges, *batch(1, empty).ranges, *batch(2).ranges])
    assert (whole.offsets, whole.leader_epochs) == (OffsetRange(ZERO, 0, 30), ((0, 0),))


def test_run_ends_after_an_hour_or_a_thousand_batches() -> None:
    seconds = int(LONGEST.total_seconds())
    slow = [replace(batch(n), landed_at=NOON + timedelta(seconds=n * seconds / 10)) for n in range(25)]

    assert joined(*slow) == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    assert [len(run) for run in joined(*map(batch, range(MAX_BATCHES + 1)))] == [MAX_BATCHES, 1]


def test_joined_epochs_are_those_of_one_reading() -> None:
    parts = [read(ZERO, 0, 10), read(ZERO, 10, 20, epochs=((0, 10), (3, 15))), read(ZERO, 20, 30, epochs=((3, 20),))]

    (whole,) = join_ranges(piece for n, part in enumerate(parts) for piece in batch(n, part).ranges)

    assert whole.leader_epochs == ((0, 0), (3, 15))


@st.composite
def histories(draw: st.DrawFn) -> list[OldBatch]:
    """Draw batches of two Kafka partitions that read on, skip, or read again, and append to three files."""
    ends, files, history = {ZERO: 0, ONE: 0}, [0, 0, 0], list[OldBatch]()
    for n in range(draw(st.integers(0, 12))):
        ranges = []
        for source in draw(st.sets(st.sampled_from([ZERO, ONE]), min_size=1)):
            start = max(0, ends[source] + draw(st.sampled_from([0, 0, 0, 0, 3, -4])))
            ends[source] = start + draw(st.integers(1, 9))
            ranges.append(read(source, start, ends[source]))
        landings = []
        for at in draw(st.sets(st.integers(0, 2), min_size=1)):
            start = files[at] + draw(st.sampled_from([0, 0, 0, 1]))
            files[at] = start + draw(st.integers(1, 5))
            kind = draw(st.sampled_from([ON_TIME, ON_TIME, LATE]))
            landings.append(OldLanding(NOON + timedelta(minutes=at), start, files[at], kind))
        history.append(
            OldBatch(
                n,
                *draw(st.sampled_from([(1, 1), (1, 1), (1, 2), (2, 1)])),
                NOON,
                tuple(ranges),
                tuple(landings),
                draw(st.booleans()),
            )
        )
    return history


@given(histories())
def test_joined_batches_hold_what_their_parts_held(history: list[OldBatch]) -> None:
    runs = list(plan_rollups(history))

    taken = [each.batch_id for run in runs for each in run]
    assert taken == sorted(set(taken))
    assert all(each.is_final for run in runs for each in run)
    left = {each.batch_id for each in history if each.is_final} - set(taken)
    assert not taken or all(number > taken[-1] for number in left), "only the last ones wait"
    for run in runs:
        parts = sorted((piece for each in run for piece in each.ranges), key=lambda piece: piece.offsets)
        for source, grouped in groupby(parts, key=lambda piece: piece.offsets.source):
            of_source = list(grouped)
            assert all(a.offsets.end == b.offsets.start for a, b in pairwise(of_source)), "disjoint, nothing between"
            (whole,) = (
                piece for piece in join_ranges(p for each in run for p in each.ranges) if piece.offsets.source == source
            )
            assert whole.offsets == OffsetRange(source, of_source[0].offsets.start, of_source[-1].offsets.end)
            assert whole.digest == sum_digests(piece.digest for piece in of_source)
        landings = sorted((x for each in run for x in each.landings), key=lambda x: (x.place, x.byte_start))
        for _, placed in groupby(landings, key=lambda x: x.place):
            of_place = list(placed)
            assert all(a.byte_end == b.byte_start for a, b in pairwise(of_place))
            assert len({each.kind for each in of_place}) == 1
