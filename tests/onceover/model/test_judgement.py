from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from onceover.model.digest import Digest
from onceover.model.finding import Evidence, is_right
from onceover.model.finding_kinds import Kind
from onceover.model.judgement import judge_window

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
# Landings 1 and 2 put 10 records and 1,000 bytes into the window, the aggregates count them.
CLEAN = Evidence(
    window_start=START,
    window_end=START + timedelta(hours=1),
    version=4,
    control=Digest(10, 100, 200, 300, 400),
    certified=None,
    certificate_version=None,
    frozen_length=0,
    landed_since=Digest(10, 100, 200, 300, 400),
    bytes_since=1000,
    landings_since=(1, 2),
    late_records=0,
    overlaps=(),
    unproved=(),
    landing_set=(1, 2),
)
# The same after a repair that froze 1,500 bytes (500 of them a failed attempt's) and a late landing of 2 records.
LATE = replace(
    CLEAN,
    version=6,
    control=Digest(12, 120, 220, 320, 420),
    certified=Digest(10, 100, 200, 300, 400),
    certificate_version=4,
    frozen_length=1500,
    landed_since=Digest(2, 20, 20, 20, 20),
    bytes_since=200,
    landings_since=(3,),
    landing_set=(1, 2, 3),
)


def kinds(evidence: Evidence, file_length: int | None) -> list[Kind]:
    return [finding.kind for finding in judge_window(evidence, file_length)]


def test_window_with_landed_bytes_and_aggregates_is_right() -> None:
    assert judge_window(CLEAN, 1000) == ()
    assert is_right(judge_window(CLEAN, 1000))


def test_bytes_without_a_landing_are_found() -> None:
    assert kinds(CLEAN, 1001) == [Kind.UNACCOUNTED_BYTES]


def test_file_that_is_missing_or_short_is_found() -> None:
    assert kinds(CLEAN, None) == [Kind.MISSING_FILE]
    assert kinds(CLEAN, 999) == [Kind.MISSING_FILE]


def test_count_that_differs_from_the_landings_is_found() -> None:
    (finding,) = judge_window(replace(CLEAN, control=Digest(20, 200, 400, 600, 800)), 1000)
    assert (finding.kind, finding.evidence["difference"]) == (Kind.AGGREGATE_MISMATCH, 10)


def test_lost_and_doubled_records_do_not_cancel_out() -> None:
    (finding,) = judge_window(replace(CLEAN, control=Digest(10, 100, 201, 300, 400)), 1000)
    assert (finding.kind, finding.evidence["difference"]) == (Kind.AGGREGATE_MISMATCH, "digest")


def test_rows_of_unknown_count_are_found() -> None:
    (finding,) = judge_window(replace(CLEAN, control=None), 1000)
    assert finding.kind is Kind.AGGREGATE_MISMATCH
    assert finding.evidence == {"counted": None, "landed": 10, "difference": "unknown"}


def test_landings_with_overlapping_offsets_are_found() -> None:
    (finding,) = judge_window(replace(CLEAN, overlaps=(1, 2)), 1000)
    assert (finding.kind, finding.evidence["landings"]) == (Kind.DUPLICATED, [1, 2])


def test_landing_without_a_proved_length_is_found() -> None:
    assert kinds(replace(CLEAN, unproved=(2,)), 1000) == [Kind.UNACCOUNTED_BYTES]


def test_certified_window_is_judged_from_its_certificate() -> None:
    assert kinds(LATE, 1700) == [Kind.LATE]
    assert kinds(LATE, 1701) == [Kind.UNACCOUNTED_BYTES, Kind.LATE]
    assert kinds(replace(LATE, control=Digest(14, 140, 240, 340, 440)), 1700) == [Kind.AGGREGATE_MISMATCH, Kind.LATE]


def test_certificate_with_extras_holds_only_until_a_change() -> None:
    changed = replace(LATE, has_extras=True)
    bytes_finding, late = judge_window(changed, 1700)
    assert (bytes_finding.kind, late.kind) == (Kind.UNACCOUNTED_BYTES, Kind.LATE)
    assert bytes_finding.evidence == {"expected_length": 1700, "file_length": 1700, "certified_extras": True}
    assert not is_right((bytes_finding, late))
    assert kinds(replace(changed, certificate_version=6), 1700) == [Kind.LATE]


def test_late_record_that_was_counted_rightly_needs_no_repair() -> None:
    assert is_right(judge_window(LATE, 1700))
    assert not is_right(judge_window(LATE, 1701))


def test_late_records_are_named_at_the_first_certificate_too() -> None:
    (finding,) = judge_window(replace(CLEAN, late_records=3), 1000)
    assert (finding.kind, finding.evidence["records"]) == (Kind.LATE, 3)


def test_failures_in_one_window_are_all_named() -> None:
    bad = replace(CLEAN, overlaps=(1, 2), control=Digest(11), late_records=1)
    assert kinds(bad, 5000) == [Kind.DUPLICATED, Kind.UNACCOUNTED_BYTES, Kind.AGGREGATE_MISMATCH, Kind.LATE]


def test_findings_wait_for_a_batch_only_if_it_can_cause_them() -> None:
    assert {kind for kind in Kind if kind.meaning.waits_for_batches} == {
        Kind.UNACCOUNTED_BYTES, Kind.MISSING_FILE, Kind.AGGREGATE_MISMATCH
    }  # fmt: skip
