from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onceover.explain.finding_text import describe_finding
from onceover.model.digest import Digest
from onceover.model.finding import Evidence, Finding
from onceover.model.finding_kinds import Kind
from onceover.model.judgement import judge_window

# The evidence that detection and repair record, for each kind.
EVIDENCE: dict[Kind, dict[str, Any]] = {
    Kind.DUPLICATED: {"landings": [4, 7]},
    Kind.UNACCOUNTED_BYTES: {"expected_length": 1000, "file_length": 1250},
    Kind.MISSING_FILE: {"expected_length": 1000, "file_length": None},
    Kind.LATE: {"records": 3, "landings": [9]},
    Kind.AGGREGATE_MISMATCH: {"counted": 120, "landed": 100, "difference": 20},
    Kind.RESTATED: {"contract_version": 2},
    Kind.STRAY_LINE: {"misplaced": 1, "foreign": 0},
    Kind.CORRUPT_LINE: {"lines": 2},
    Kind.FAILED_PROOF: {"reason": "landing 7: raw holds 4 of 5 of 5f3a0b1c-0:50-55"},
    Kind.TRUNCATED: {"end_and_stored": [["5f3a0b1c", 0, 90, 120]], "cut_from": []},
    Kind.HOLE: {"frontier_and_reach": [["5f3a0b1c", 0, 10, 30]]},
    Kind.UNREADABLE: {"stopped": [{"offsets": ["5f3a0b1c", 2, 10, 12], "why": "a damaged batch"}]},
}
EXPECTED = {
    Kind.DUPLICATED: "landings 4 and 7 overlap: 4 and 7 share 5f3a0b1c-0:50-100.",
    Kind.UNACCOUNTED_BYTES: "1,250 bytes, its landings account for 1,000: 250 more.",
    Kind.MISSING_FILE: "accounts for 1,000 bytes; there is no window file.",
    Kind.LATE: "(landing 9)",
    Kind.AGGREGATE_MISMATCH: "They count 120 records, the landings hold 100: 20 records too many.",
    Kind.RESTATED: "A repair publishes it under version 2.",
    Kind.STRAY_LINE: "1 line in the window file belongs elsewhere, and counts for nothing. A repair read every line",
    Kind.CORRUPT_LINE: "2 lines in the window file are damaged",
    Kind.FAILED_PROOF: "Its last repair says: landing 7: raw holds 4 of 5 of 5f3a0b1c-0:50-55.",
    Kind.TRUNCATED: "5f3a0b1c-0: it ends at 90, 120 was stored",
    Kind.HOLE: "5f3a0b1c-0: frontier 10, reach 30.",
    Kind.UNREADABLE: "5f3a0b1c-2:10-12: a damaged batch.",
}
LANDINGS = [
    {"landing_id": 4, "offset_ranges": [["5f3a0b1c", 0, 0, 100]]},
    {"landing_id": 5, "offset_ranges": [["5f3a0b1c", 0, 100, 200]]},
    {"landing_id": 7, "offset_ranges": [["5f3a0b1c", 0, 50, 120], ["5f3a0b1c", 1, 0, 10]]},
]


@pytest.mark.parametrize("kind", Kind)
def test_finding_text_has_the_numbers_of_each_kind(kind: Kind) -> None:
    text = describe_finding(kind, EVIDENCE[kind], LANDINGS)
    assert EXPECTED[kind] in f"{text.what} {text.how}"


def test_missing_compacted_file_reads_differently_from_text() -> None:
    text = describe_finding(Kind.MISSING_FILE, {"expected_length": 1000, "file_length": None, "compacted": True}, [])
    assert "compacted file that replaces the window's text" in text.what
    assert "1,000 bytes" in text.how


def test_hole_of_many_ranges_names_the_first_and_counts_the_rest() -> None:
    gaps = [
        {"offsets": ["5f3a0b1c", 0, 2 * n, 2 * n + 1], "reason": "lost", "likely_windows": []} for n in range(1_020)
    ]
    how = describe_finding(Kind.HOLE, {"gaps": gaps}).how
    assert how.startswith("5f3a0b1c-0:0-1 lost: Kafka still has them, the next repair reads them again; ")
    assert "5f3a0b1c-0:38-39" in how
    assert how.endswith("; and 1,000 more ranges.")


def test_recorded_evidence_is_shown_in_full() -> None:
    evidence = Evidence(
        window_start=datetime(2013, 1, 1, tzinfo=UTC),
        window_end=datetime(2013, 1, 1, 1, tzinfo=UTC),
        version=3,
        control=Digest(5, 1, 1, 1, 1),
        certified=Digest(2, 1, 1, 1, 1),
        certificate_version=1,
        frozen_length=100,
        landed_since=Digest(3, 1, 1, 1, 1),
        bytes_since=100,
        landings_since=(4, 7),
        late_records=0,
        overlaps=(4, 7),
        unproved=(7,),
        landing_set=(1, 4, 7),
        has_extras=True,
    )
    for length in (None, 150, 300):
        for finding in judge_window(evidence, length):
            assert _has_words(finding)


def _has_words(finding: Finding) -> bool:
    return describe_finding(finding.kind, finding.evidence, LANDINGS).what != str(finding.kind)


def test_extras_of_a_changed_window_read_as_such() -> None:
    evidence = {"expected_length": 1000, "file_length": 1000, "certified_extras": True}
    how = describe_finding(Kind.UNACCOUNTED_BYTES, evidence).how
    assert how.startswith("The last certificate counts records that had landed nowhere, and the window has changed")


def test_stray_lines_are_numbered_by_where_they_belong() -> None:
    text = describe_finding(Kind.STRAY_LINE, {"misplaced": 1, "foreign": 3})
    assert text.what == "4 lines in the window file belong elsewhere, and count for nothing."
    assert "release from quarantine that never landed: 1. Of a log that neither" in text.how
    assert text.how.endswith("marker names: 3.")


def test_equal_count_of_other_records_reads_as_such() -> None:
    text = describe_finding(Kind.AGGREGATE_MISMATCH, {"counted": 100, "landed": 100, "difference": "digest"})
    assert "not the same ones" in text.how


def test_unknown_evidence_version_and_kind_are_shown_unchanged() -> None:
    assert describe_finding(Kind.DUPLICATED, {"elsewhere": 1}).how == "elsewhere 1"
    assert describe_finding("sunspots", {"many": 3}).how == "many 3"


def test_rows_changed_by_hand_read_as_such_and_not_as_a_count() -> None:
    swept = describe_finding(Kind.AGGREGATE_MISMATCH, {"certified_rows": 2, "rows": 1, "difference": "rows"})
    assert swept.how == "The certificate states 2 rows; the aggregates hold other rows: 1 row."
    judged = describe_finding(Kind.AGGREGATE_MISMATCH, {"counted": None, "landed": 10, "difference": "unknown"})
    assert judged.what == swept.what
    assert judged.how == "How many records they count is unknown; the landings hold 10 records."


def test_cut_log_names_where_it_is_read_on() -> None:
    text = describe_finding(Kind.TRUNCATED, {"end_and_stored": [], "cut_from": [["5f3a0b1c", 0, 2_000]]})
    assert "was cut" in text.what
    assert "5f3a0b1c-0: from offset 2,000 on. Ingest reads on there; both count." in text.how
