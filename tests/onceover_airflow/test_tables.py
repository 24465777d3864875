"""Tables for logs, rows for XCom."""

from __future__ import annotations

from onceover_airflow.tables import evidence_table, format_table, shorten


def test_table_aligns_numbers_to_the_right() -> None:
    assert format_table([{"window": "2013-01-01T05:00Z", "lines": 1200}, {"window": "x", "lines": 7}]).splitlines() == [
        "window             lines",
        "-----------------  -----",
        "2013-01-01T05:00Z  1,200",
        "x                      7",
    ]


def test_empty_table_says_so() -> None:
    assert format_table([]) == "(none)"


def test_finding_is_a_line_with_its_evidence() -> None:
    findings = [{"kind": "late", "landings": [7, 9]}, {"kind": "stray line", "misplaced": "x" * 500}]
    lines = evidence_table([{"window": "w1", "findings": findings}, {"window": "w2", "findings": []}]).splitlines()

    assert lines[2].split() == ["w1", "late", "landings=7,", "9"]
    assert lines[3].startswith("w1      stray line")
    assert lines[3].endswith("...")
    assert lines[4].split() == ["w2", "none,", "repaired", "by", "force", "-"]


def test_long_list_is_cut_and_says_how_much_is_missing() -> None:
    assert shorten({"failed": list(range(5)), "judged": 9}, limit=2) == {
        "failed": [0, 1],
        "failed_left_out": 3,
        "judged": 9,
    }
