"""A window's state in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from onceover.explain.gather import WindowFacts, describe_expiry
from onceover.explain.window_text import describe_certificate_basis, describe_state, describe_verdict
from onceover.ledger.rebuilt_rows import EXPIRED_WHY
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.windowing import Windowing


def make_facts(state: str, expired_why: str | None) -> WindowFacts:
    return WindowFacts(
        pipeline="things",
        window=Windowing(60).window_at(datetime(2013, 1, 1, 5, tzinfo=UTC)),
        rows={
            "window": {
                "state": state,
                "expired_why": expired_why,
                "rows_without_raw": expired_why == EXPIRED_WHY,
                "blocked_why": None,
            },
            "findings": [],
            "repairs": [],
            "losses": [],
            "skipped": {},
        },
        judged=None,
        not_judged=None,
        file_length=None,
        changing=False,
        of_pipeline=(),
        raw_store="hdfs",
        window_file="/raw",
        compacted=None,
        has_unknown_compacted=False,
        aggregates="aggregates.things",
        lost_schema=None,
    )


@pytest.mark.parametrize(
    ("expired_why", "expected"),
    [
        (None, "its raw has expired by the pipeline's retention"),
        (EXPIRED_WHY, f"it counts as expired, {EXPIRED_WHY}"),
        ("declared by me: restored", "it counts as expired, declared by me: restored"),
    ],
)
def test_expired_window_says_the_stored_reason(expired_why: str | None, expected: str) -> None:
    assert describe_expiry(expired_why) == expected
    assert describe_verdict(make_facts("expired", expired_why)).casefold().startswith(f"{expected.casefold()}: ")
    assert ("perhaps twice" in describe_verdict(make_facts("expired", expired_why))) is (expired_why == EXPIRED_WHY)


def test_open_window_needs_no_reason() -> None:
    assert describe_verdict(make_facts("open", None)) == "It is open: records may still arrive."


def test_certified_window_that_is_not_judged_now_says_so_first() -> None:
    certified = make_facts("certified", None)
    assert describe_state(certified) == "not judged now, last known as certified"
    assert describe_verdict(certified).startswith("By the ledger alone, it is certified: each record is counted")
    assert describe_state(replace(certified, judged=())) == "certified"
    assert [describe_state(make_facts(state, None)) for state in ("open", "expired")] == ["open", "expired"]


def test_certificate_beside_skipped_offsets_is_of_what_was_read() -> None:
    certified = replace(make_facts("certified", None), judged=())
    assert describe_verdict(certified) == "It is certified: each record is counted exactly once."
    hole = Finding(Kind.HOLE, {"gaps": []})
    beside = describe_verdict(replace(certified, of_pipeline=(hole,)))
    assert beside.startswith("It is certified for what was read: each record that was read is counted exactly once.")
    assert "skipped offsets may hold others" in beside
    lossy = replace(certified, rows={**certified.rows, "losses": [{}]}, of_pipeline=(hole,))
    assert describe_verdict(lossy).startswith("It is certified, but for an accepted loss, for what was read: ")


def describe_basis(store: str = "hdfs", **rests_on: object) -> str:
    stated = {"basis": "raw", "by_columns": None, "by_value": None, "lost_offsets": 0, "extras": [],
              "contract_versions": [], "evaluated_by": [], **rests_on}  # fmt: skip
    certified = make_facts("certified", None)
    facts = replace(certified, rows={**certified.rows, "rests_on": stated}, raw_store=store)
    return describe_certificate_basis(facts) or ""


@pytest.mark.parametrize(
    ("by_columns", "by_value", "said"),
    [
        (None, None, "; no landing"),
        (1200, 0, "; 1,200 records counted by the columns in their lines; no landing"),
        (1, 1200, "; 1 record counted by the columns in their lines, and 1,200 by their Kafka values; no landing"),
    ],
)
def test_certificate_says_what_its_records_count_by(by_columns: int | None, by_value: int | None, said: str) -> None:
    text = describe_basis(by_columns=by_columns, by_value=by_value)
    assert text == f"It rests on every line of the window's raw on HDFS, compared with the ledger{said}."


def test_certificate_says_how_many_records_landed_nowhere() -> None:
    said = "records counted by the columns in their lines; {} among them that had landed nowhere; no landing."
    for end, extras in ((6, "1 record"), (7, "2 records")):
        text = describe_basis(by_columns=9, by_value=0, extras=[["5f3a0b1c", 0, 5, end, 3]])
        assert text.endswith(said.format(extras))


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("hdfs", "the file's length on HDFS"),
        ("hbase", "the end of the file's last cell on HBase"),
        ("folder", "the file's length on folder"),
    ],
)
def test_certificate_names_what_its_raw_store_shows(store: str, said: str) -> None:
    text = describe_basis(store, basis="ledger")
    assert text == f"It rests on the ledger's counts and digests, and {said}; no landing."


def test_certificate_names_the_versions_that_evaluated_its_lines() -> None:
    known = {"spark": "4.2.0", "zones": "2025b"}
    by = [{"code": "1.0", **known}, {"code": "1.1", **known}, {"code": None, "spark": None}]
    assert describe_basis(basis="ledger", contract_versions=[1], evaluated_by=by).endswith(
        "; lines evaluated by Onceover 1.0 on Spark 4.2.0 with time zones of 2025b and Onceover 1.1 on Spark 4.2.0 "
        "with time zones of 2025b and a version that the ledger does not know; contract 1."
    )
