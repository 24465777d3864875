"""`onceover pipelines check --sample`: what the contract makes of the last records, before any is ingested."""

from __future__ import annotations

import pytest
from tests.integration.events import NOON_MS, event
from tests.integration.lane import Lanes
from tests.integration.program import as_json, run

from onceover.context import open_ledger
from onceover.kafka import TopicFacts
from onceover.kafka.last_offsets import plan_sample

pytestmark = pytest.mark.stack


def test_sample_takes_as_much_of_each_partition_as_it_has() -> None:
    facts = TopicFacts("t", "i", "0a1b2c3d", {0: 5, 1: 0, 2: 0}, {0: 8, 1: 100, 2: 100})
    assert [(r.start, r.end) for r in plan_sample(facts, 43)] == [(5, 8), (80, 100), (80, 100)]
    assert [(r.start, r.end) for r in plan_sample(facts, 2)] == [(99, 100), (99, 100)]
    assert plan_sample(TopicFacts("t", "i", "0a1b2c3d", {0: 5}, {0: 5}), 9) == ()


@pytest.mark.rare
def test_sample_shows_windows_keys_and_reasons_only(lanes: Lanes) -> None:
    lane = lanes()
    near, late = NOON_MS + 2 * 60_000, NOON_MS + 37 * 60_000
    lane.produce([b"too early for the sample", event(1, "a", 7), event(2, "b")], timestamp=near)
    lane.produce([event(6, "c")], timestamp=late)
    lane.produce([b"rubbish", b"\x00\x00\x00\x00\x07" + event(1)])

    output = as_json("pipelines", "check", lane.name, "--sample", "5")

    report, framed = output["sample"], "unparseable: Confluent's wire format, schema ID 7"
    assert (report["records"], report["quarantined"], sorted(report["windows"].values())) == (5, 2, [1, 2])
    assert [row["kind"] for row in report["newest"]] == ["c", "b", "a"]
    assert [row["amount_sum"] for row in report["newest"]] == [1, 1, 7]
    times = [(row["difference in ms"], row["is far"]) for row in report["newest"]]
    assert (times, report["far"]) == ([(-31 * 60_000, True), (0, False), (-60_000, False)], 1)
    assert [report["newest"][0][name] for name in ("event time", "Kafka time")] == [
        *("2026-03-01T12:06Z", "2026-03-01T12:37Z")
    ]
    assert [each["reason"] for each in report["reasons"]] == [framed, "unparseable: not one JSON object"]
    assert ['wire_format = "confluent"' in (each["remedy"] or "") for each in report["reasons"]] == [*(True, False)]
    assert output["warnings"] == []
    with open_ledger("test") as ledger:
        known = ledger.execute("SELECT 1 FROM onceover.pipeline WHERE name = %s", [lane.name]).fetchall()
    assert known == [], "the sample is written nowhere"


@pytest.mark.rare
def test_sample_shows_what_wrong_patterns_make_of_records(lanes: Lanes) -> None:
    lane = lanes()
    twelve = "to_timestamp(date_format(timestamp_millis(value.at), 'yyyy-MM-dd hh:mm'), 'yyyy-MM-dd hh:mm')"
    number = "if(startswith(value.kind, '['), CAST(CAST(value.kind AS INT) AS STRING), value.kind)"
    wrong = {'"value.kind"': f'"{number}"', '"value.at"': f'"{twelve}"', 'horizon = "none"': 'horizon = "2d"'}
    for right, instead in wrong.items():
        lane.toml.write_text(lane.toml.read_text().replace(right, instead))
    three_days = 3 * 24 * 60
    lane.produce(
        [event(1, "[a]"), event(2, "[b]"), event(3, "k" * 300), event(-three_days)], timestamp=NOON_MS + 3 * 60_000
    )

    done = run("pipelines", "check", lane.name, "--sample", "100")

    assert done.returncode == 1
    for words in (
        f" {'k' * 40}…",
        "event_time: pattern 'yyyy-MM-dd hh:mm': `hh` without `a` reads 12:15 as 00:15, and not 13:15; take HH",
        "2026-03-01T00:03Z  2026-03-01T12:03Z  12 h before, far",
        "beyond horizon: event time 2026-02-26T00:00Z, Kafka's 2026-03-01T12:03Z: 3 d 12 h before, far",
        "SQL failed: key kind: [CAST_INVALID_INPUT]",
        "of the last 4 records, 1 fit 1 window, 3 go to quarantine",
        "1 record that fit: event time more than 30 min from Kafka's; unless the topic is a replay",
    ):
        assert words in done.stdout


def test_sample_needs_one_pipeline_and_spark() -> None:
    for words in (("--sample", "5"), ("flights", "--sample", "5", "--no-spark")):
        done = run("pipelines", "check", *words)
        assert (done.returncode, "needs the name of one pipeline" in done.stderr) == (2, True)
