"""`onceover pipelines check --sample`: what the contract makes of the last records, before any is ingested."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.lane import Lane, event
from tests.integration.program import as_json, run

from onceover.context import open_ledger
from onceover.kafka import TopicFacts
from onceover.spark.sample import plan_sample

pytestmark = pytest.mark.stack


def test_sample_takes_as_much_of_each_partition_as_it_has() -> None:
    facts = TopicFacts("t", "i", "0a1b2c3d", {0: 5, 1: 0, 2: 0}, {0: 8, 1: 100, 2: 100})
    assert [(r.start, r.end) for r in plan_sample(facts, 43)] == [(5, 8), (80, 100), (80, 100)]
    assert [(r.start, r.end) for r in plan_sample(facts, 2)] == [(99, 100), (99, 100)]
    assert plan_sample(TopicFacts("t", "i", "0a1b2c3d", {0: 5}, {0: 5}), 9) == ()


def test_sample_shows_windows_keys_and_reasons_only(lanes: Callable[..., Lane]) -> None:
    lane = lanes()
    lane.produce([b"too early for the sample", event(1, "a", 7), event(2, "b"), event(6, "c"), b"rubbish"])

    report = as_json("pipelines", "check", lane.name, "--sample", "4")["sample"]

    assert (report["records"], report["quarantined"], sorted(report["windows"].values())) == (4, 1, [1, 2])
    assert [row["kind"] for row in report["newest"]] == ["c", "b", "a"]
    assert [row["amount_sum"] for row in report["newest"]] == [1, 1, 7]
    assert [each["reason"] for each in report["reasons"]] == ["unparseable: not one JSON object"]
    with open_ledger("test") as ledger:
        known = ledger.execute("SELECT 1 FROM onceover.pipeline WHERE name = %s", [lane.name]).fetchall()
    assert known == [], "the sample is written nowhere"


def test_sample_of_a_wrong_regex_gives_sparks_own_error(lanes: Callable[..., Lane]) -> None:
    lane = lanes()
    lane.toml.write_text(
        lane.toml.read_text().replace('"value.kind"', r'''"regexp_extract(value.kind, '\\[(.)', 1)"''')
    )
    lane.produce([event(1, "[a]"), event(2, "[b]")])

    done = run("pipelines", "check", lane.name, "--sample", "100")

    assert done.returncode == 1
    assert "SQL failed: key kind" in done.stdout
    assert "[INVALID_PARAMETER_VALUE.PATTERN]" in done.stdout
    assert "of the last 2 records, 0 fit 0 windows, 2 go to quarantine" in done.stdout


def test_sample_needs_one_pipeline_and_spark() -> None:
    for words in (("--sample", "5"), ("flights", "--sample", "5", "--no-spark")):
        done = run("pipelines", "check", *words)
        assert (done.returncode, "needs the name of one pipeline" in done.stderr) == (2, True)
