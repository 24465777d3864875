from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import CompactedFile
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.release import Release
from onceover.model.repair_failure import RepairFailure
from onceover.repair.proof import Verdict, add_failed_proof, list_doubtful, list_unproved_parts, prove

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
P0 = KafkaPartition("00000001", 0)


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(P0, start, end)


# Offsets 0..9 landed twice, the second time with 10..14. Each is a record with the digest (1, its number).
def digest(start: int, end: int) -> Digest:
    return Digest(end - start, sum(range(start, end)))


LANDINGS = (ClaimedLanding(1, ((of(0, 10), digest(0, 10)),)), ClaimedLanding(2, ((of(0, 15), digest(0, 15)),)))
CLAIMED = ClaimedWindow(7, START, START + timedelta(hours=1), UUID(int=1), 4, LANDINGS, None)
RIGHT = RebuiltWindow(
    digest(0, 15),
    lines=25,
    frozen_length=900,
    ranges=(RebuiltRange(of(0, 10), digest(0, 10)), RebuiltRange(of(10, 15), digest(10, 15))),
)


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1)


@given(SPANS, st.data())
def test_landing_under_any_overlap_is_proved_by_its_own_records(
    spans: list[tuple[int, int]], data: st.DataObject
) -> None:
    landings = tuple(ClaimedLanding(n, ((of(a, a + size), digest(a, a + size)),)) for n, (a, size) in enumerate(spans))
    claimed = replace(CLAIMED, landings=landings)
    bounds = sorted({bound for a, size in spans for bound in (a, a + size)})
    pieces = [(a, b) for a, b in pairwise(bounds) if any(at <= a < at + size for at, size in spans)]
    ranges = tuple(RebuiltRange(of(*piece), digest(*piece)) for piece in pieces)
    assert prove(claimed, replace(RIGHT, ranges=ranges)).is_proved
    lost = data.draw(st.sampled_from(ranges))
    short = replace(RIGHT, ranges=tuple(r for r in ranges if r is not lost))
    wanting = {n for n, (a, size) in enumerate(spans) if a <= lost.offsets.start < a + size}
    reasons = prove(claimed, short).reasons
    assert {int(r.split(":")[0].removeprefix("landing ")) for r in reasons} == wanting


def test_verification_of_many_small_landings_takes_linear_time() -> None:
    many = 40_000
    landings = tuple(ClaimedLanding(n, ((of(n, n + 2), digest(n, n + 2)),)) for n in range(many))
    ranges = tuple(RebuiltRange(of(n, n + 1), digest(n, n + 1)) for n in range(many + 1))
    started = time.process_time()
    assert prove(replace(CLAIMED, landings=landings), replace(RIGHT, ranges=ranges)).is_proved
    assert time.process_time() - started < 5  # all pairs would be 1.6 billion comparisons: minutes


def test_raw_with_every_landing_is_proved_and_duplicates_counted() -> None:
    with_stray = replace(RIGHT, lines=26, stray_lines=1, strays=(EpochSpan(of(20, 21), 1),))
    for rebuilt in (RIGHT, with_stray):
        assert (prove(CLAIMED, rebuilt), rebuilt.duplicates) == (Verdict(()), 10)


def test_landing_that_lost_a_record_refuses_the_window() -> None:
    short = replace(RIGHT, ranges=(RIGHT.ranges[0], RebuiltRange(of(10, 15), digest(10, 14))))
    verdict = prove(CLAIMED, short)
    assert verdict.reasons == ("landing 2: raw holds 14 of 15 of 00000001-0:0-15",)
    assert verdict.failures == {RepairFailure.LOST_LINE}


def test_replay_after_log_compaction_is_proved_by_the_first_one() -> None:
    thinner = (LANDINGS[1], ClaimedLanding(3, ((of(0, 10), Digest(7, 40)),)))
    assert prove(replace(CLAIMED, landings=thinner), RIGHT).is_proved
    alone = replace(CLAIMED, landings=(ClaimedLanding(3, ((of(0, 15), Digest(7, 40)),)),))
    assert not prove(alone, RIGHT).is_proved


def test_replay_across_adjacent_proved_landings_is_proved() -> None:
    first, second = (ClaimedLanding(n, ((of(a, b), digest(a, b)),)) for n, (a, b) in enumerate(((0, 10), (10, 15))))
    across = ClaimedLanding(3, ((of(5, 15), Digest(7, 40)),))
    pieces = tuple(RebuiltRange(of(a, b), digest(a, b)) for a, b in ((0, 5), (5, 10), (10, 15)))
    claimed, rebuilt = replace(CLAIMED, landings=(first, second, across)), replace(RIGHT, ranges=pieces)
    assert prove(claimed, rebuilt).is_proved
    beyond = replace(claimed, landings=(first, across))
    assert [str(p.offsets) for p in list_unproved_parts(beyond, rebuilt)] == ["00000001-0:5-15"]


def test_spare_lines_are_doubtful_until_they_are_known() -> None:
    # A batch appended 0..9 and died; of these, Kafka's compaction left all but 1, 3 and 4 for the next batch to read.
    landed = digest(0, 10) - Digest(3, 8)
    claimed = replace(CLAIMED, landings=(ClaimedLanding(1, ((of(0, 10), landed),)),))
    rebuilt = replace(RIGHT, ranges=(RebuiltRange(of(0, 10), digest(0, 10)),))
    assert prove(claimed, rebuilt).reasons == (f"landing 1: raw holds 10 of 7 of {of(0, 10)}",)
    assert list_doubtful(claimed, rebuilt) == (of(0, 10),)
    known = replace(rebuilt, digest=landed, lines=10, spare_lines=3, ranges=(RebuiltRange(of(0, 10), landed),))
    assert prove(claimed, known) == Verdict(())
    assert known.duplicates == 0


def test_equal_count_with_another_digest_refuses_the_window() -> None:
    other = replace(RIGHT, ranges=(RIGHT.ranges[0], RebuiltRange(of(10, 15), Digest(5, 1))))
    verdict = prove(CLAIMED, other)
    assert verdict.reasons == ("landing 2: raw holds 15 of 15 of 00000001-0:0-15, with another digest",)
    assert verdict.failures == {RepairFailure.LOST_LINE}


def test_rebuild_with_less_than_certified_is_never_published() -> None:
    better = replace(CLAIMED, certified=digest(0, 16))
    assert "fewer are never published" in prove(better, RIGHT).reasons[0]
    assert prove(better, RIGHT).failures == {RepairFailure.FEWER_RECORDS}


def test_two_contents_of_a_reading_refuse_and_name_the_ids() -> None:
    clashing = tuple(EpochSpan(of(n, n + 1), 1) for n in (3, 5, 7, 9))
    verdict = prove(CLAIMED, replace(RIGHT, clashing=clashing))
    (reason,) = verdict.reasons
    assert reason == "4 IDs with two contents under one leader epoch: " + ", ".join(
        f"{P0}:{n}-{n + 1}" for n in (3, 5, 7)
    )
    assert verdict.failures == {RepairFailure.TWO_CONTENTS}
    assert verdict.findings == ()
    assert add_failed_proof(reason, verdict.failures, verdict) == (Finding(Kind.FAILED_PROOF, {"reason": reason}),)


# The log was cut at 4 and grew again: the first landing read what it held before, the second one what it holds now.
OLD = ClaimedLanding(1, ((of(0, 10), digest(0, 10)),), spans=(EpochSpan(of(0, 10), 1),))
NEW = ClaimedLanding(
    2, ((of(0, 15), digest(0, 4) + Digest(11, 999)),), spans=(EpochSpan(of(0, 4), 1), EpochSpan(of(4, 15), 2))
)
CUT = replace(CLAIMED, landings=(OLD, NEW))
OF_EPOCHS = (
    RebuiltRange(of(0, 4), digest(0, 4), leader_epoch=1),
    RebuiltRange(of(4, 10), digest(4, 10), leader_epoch=1),
    RebuiltRange(of(4, 15), Digest(11, 999), leader_epoch=2),
)


def test_landings_of_one_offset_hold_the_records_of_their_epoch() -> None:
    assert prove(CUT, replace(RIGHT, ranges=OF_EPOCHS)).is_proved
    for n, lacking in enumerate(([1, 2], [1], [2])):
        short = (*OF_EPOCHS[:n], replace(OF_EPOCHS[n], digest=OF_EPOCHS[n].digest - Digest(1, 1)), *OF_EPOCHS[n + 1 :])
        unproved = list_unproved_parts(CUT, replace(RIGHT, ranges=short))
        assert [part.landing.landing_id for part in unproved] == lacking


def test_landing_of_unknown_epochs_holds_records_of_any() -> None:
    spans = (EpochSpan(of(0, 4), 1), EpochSpan(of(4, 15), None))
    blind = ClaimedLanding(2, ((of(0, 15), digest(0, 15)),), spans=spans)
    pieces = tuple(RebuiltRange(of(a, b), digest(a, b)) for a, b in ((0, 4), (4, 10), (10, 15)))
    rebuilt = replace(RIGHT, ranges=pieces)
    assert prove(replace(CLAIMED, landings=(OLD, blind)), rebuilt).is_proved
    assert not prove(replace(CLAIMED, landings=(OLD,)), rebuilt).is_proved, "its epoch is known"


def test_landing_is_not_proved_by_that_of_another_epoch() -> None:
    thinner = replace(NEW, parts=((of(4, 10), Digest(3, 30)),), spans=(EpochSpan(of(4, 10), 2),))
    ranges = (
        RebuiltRange(of(0, 10), digest(0, 10), leader_epoch=1),
        RebuiltRange(of(4, 10), Digest(4, 40), leader_epoch=2),
    )
    verdict = prove(replace(CLAIMED, landings=(OLD, thinner)), replace(RIGHT, ranges=ranges))
    assert verdict.failures == {RepairFailure.STRAY_RECORD}
    again = replace(thinner, landing_id=3, parts=((of(4, 10), Digest(4, 40)),))
    assert prove(replace(CLAIMED, landings=(OLD, thinner, again)), replace(RIGHT, ranges=ranges)).is_proved


def test_torn_tail_outside_every_landing_refuses_nothing() -> None:
    verdict = prove(CLAIMED, replace(RIGHT, lines=26, corrupt_lines=1))
    assert verdict.is_proved
    assert [f.kind for f in verdict.findings] == [Kind.CORRUPT_LINE]


def test_try_that_lacks_lines_says_so_unless_a_finding_does() -> None:
    reason = "landing 7: raw holds 4 of 5 of lost"
    damaged = Finding(Kind.CORRUPT_LINE, {"lines": 1})
    lost = {RepairFailure.LOST_LINE}
    (failed,) = add_failed_proof("reading raw failed: Could not obtain block", {RepairFailure.UNREADABLE_FILE}, None)
    assert (failed.kind, failed.evidence["reason"]) == (Kind.FAILED_PROOF, "reading raw failed: Could not obtain block")
    assert [f.kind for f in add_failed_proof(reason, lost, Verdict((reason,), ()))] == [Kind.FAILED_PROOF]
    assert add_failed_proof(reason, lost, Verdict((reason,), (damaged,))) == (damaged,)
    assert add_failed_proof("publishing failed: disk full", {RepairFailure.REFUSED_ROWS}, None) == ()


def test_damaged_compacted_file_is_the_first_reason() -> None:
    compacted = CompactedFile(digest(0, 15), 1_000)
    claimed = replace(CLAIMED, compacted=compacted)
    lacking = replace(RIGHT, ranges=RIGHT.ranges[:1], compacted=digest(0, 10))
    reasons = prove(claimed, lacking).reasons
    assert reasons[0].startswith("the compacted file that replaced the window's text is missing or damaged: 10 records")
    assert len(reasons) == 2
    assert prove(claimed, replace(RIGHT, compacted=digest(0, 15))).is_proved
    assert prove(claimed, replace(RIGHT, compacted=digest(0, 10))).is_proved, "text that came since has the rest"
    clashing = replace(lacking, clashing=(EpochSpan(of(3, 4), 1),))
    assert not any("compacted" in reason for reason in prove(claimed, clashing).reasons), "another content may count"
    whole = replace(lacking, compacted=digest(0, 15))
    assert not any("compacted" in reason for reason in prove(claimed, whole).reasons), "what came since is missing"


RELEASE = Release(90, 2, (of(3, 4), of(7, 9)))  # 3, 7 and 8 were in quarantine, and no other landing counts them
# A batch of several ranges read 1, 3 and 12; 3 lies in what the other landing read.
EXACT = ClaimedLanding(4, ((of(1, 13), Digest(3, 16)),), exact=(of(1, 2), of(3, 4), of(12, 13)))
WITH_EXACT = replace(CLAIMED, landings=(ClaimedLanding(1, ((of(2, 6), digest(2, 6)),)), EXACT))
OF_EXACT = RebuiltRange(of(1, 13), Digest(2, 13), exact_id=4)


def test_exact_ids_are_proved_beside_and_within_ranges() -> None:
    read = tuple(RebuiltRange(of(a, b), digest(a, b)) for a, b in ((2, 3), (3, 4), (4, 6)))
    rebuilt = replace(RIGHT, lines=7, ranges=(*read, OF_EXACT))
    assert prove(WITH_EXACT, rebuilt).is_proved
    for short in (replace(rebuilt, ranges=read), replace(rebuilt, ranges=(read[0], read[2], OF_EXACT))):
        assert any("landing 4: raw holds" in reason for reason in prove(WITH_EXACT, short).reasons)
    of_another = replace(rebuilt, ranges=(*read, replace(OF_EXACT, exact_id=9)))
    assert prove(WITH_EXACT, of_another).reasons == (f"landing 4: raw holds 1 of 3 of {of(1, 13)}",)


RELEASED = ClaimedLanding(3, ((of(3, 9), Digest(3, 18)),), RELEASE)
OTHERS = Digest(10 - 3, sum(range(10)) - 18)
WITH_RELEASE = replace(CLAIMED, landings=(ClaimedLanding(1, ((of(0, 10), OTHERS),)), RELEASED))
OF_RELEASE = RebuiltRange(of(3, 9), Digest(3, 18), 90)


def test_released_records_are_proved_by_their_release_alone() -> None:
    rebuilt = replace(RIGHT, lines=10, ranges=(RebuiltRange(of(0, 10), OTHERS), OF_RELEASE))
    assert prove(WITH_RELEASE, rebuilt).is_proved
    lost = replace(rebuilt, ranges=(RebuiltRange(of(0, 10), OTHERS), replace(OF_RELEASE, digest=Digest(2, 10))))
    assert prove(WITH_RELEASE, lost).reasons == (f"landing 3: raw holds 2 of 3 of {of(3, 9)}",)
    read_again = replace(
        WITH_RELEASE, landings=(*WITH_RELEASE.landings, ClaimedLanding(4, ((of(0, 10), digest(0, 10)),)))
    )
    assert prove(read_again, rebuilt).is_proved, "a rebuilt ledger has one contract for reading and release"
    as_read = replace(rebuilt, ranges=(RebuiltRange(of(0, 10), digest(0, 10)),))
    assert not prove(WITH_RELEASE, as_read).is_proved, "the same records, as if the batch had landed them"


def test_stray_lines_are_a_finding_and_block_no_window() -> None:
    verdict = prove(CLAIMED, replace(RIGHT, lines=28, foreign_lines=3, misplaced_lines=1))
    assert verdict.is_proved
    assert verdict.findings == (Finding(Kind.STRAY_LINE, {"misplaced": 1, "foreign": 3}),)


WITH_EXTRAS = replace(RIGHT, digest=digest(0, 15) + digest(20, 23), lines=29, extras=(EpochSpan(of(20, 23), 1),))


def test_extras_count_and_need_no_landing() -> None:
    assert prove(CLAIMED, WITH_EXTRAS) == Verdict(())
    assert WITH_EXTRAS.duplicates == 11
    unlisted = prove(CLAIMED, replace(WITH_EXTRAS, lists_all=False))
    assert unlisted.failures == {RepairFailure.TOO_MANY_EXTRAS}


def test_certified_extras_may_go_once_they_have_landed() -> None:
    certified = replace(CLAIMED, certified=WITH_EXTRAS.digest)
    assert prove(certified, WITH_EXTRAS).is_proved
    assert prove(replace(certified, may_go=3), RIGHT).is_proved
    assert prove(replace(certified, may_go=2), RIGHT).failures == {RepairFailure.FEWER_RECORDS}
