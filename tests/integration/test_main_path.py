"""Ingest, detection, repair and certificates on the real stack, turn by turn."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.events import NOON_MS, event
from tests.integration.kills import kill_after
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on
from tests.integration.planted_failures import land_without_commit, minutes, replay

from onceover.fault_points import Step
from onceover.lines.escapes import escape_headers
from onceover.model.finding_kinds import Kind
from onceover.observability import metric_values
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


STORES = (
    "hdfs", pytest.param("hbase", marks=pytest.mark.rare), pytest.param("folder", marks=pytest.mark.largest),
)  # fmt: skip
"""The last one only tests know: a variable names it, and no other part of the product has to."""


@pytest.fixture(params=STORES)
def lanes(
    request: pytest.FixtureRequest, lanes: Lanes, stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Lanes:
    """Return a maker of lanes, whose raw is on each store in turn."""
    monkeypatch.setenv("ONCEOVER_FOLDER", str(tmp_path))
    return put_on(request.param, lanes, stack)


def test_clean_run_is_certified_from_the_ledger_without_repair(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=40)
    lane.produce([event(n / 2, "ab"[n % 2], n) for n in range(60)], 0)
    lane.produce([event(n / 2, None if n % 3 else "c", n) for n in range(60)], 1)  # type: ignore[arg-type]
    done = lane.ingest()
    assert sum(p.batch_id is not None for p in done) > 2, "several batches touch each window"
    detection = lane.detect()
    assert (detection.failed, detection.request_id, detection.waiting, detection.open) == ((), None, 0, 0)
    assert detection.certified == detection.judged == 6
    assert lane.detect().judged == 0
    # The records without a kind are quarantined; everything of the log is there once, by ID, with its exact bytes.
    kept = lane.lines()
    log = lane.log()
    assert set(lane.ids()) == log.keys()
    assert len(kept) == len(log) == 120
    assert (
        sum(x.reason is not None for _, x in kept) == 40 == done[0].quarantined + sum(p.quarantined for p in done[1:])
    )
    assert {name for name, x in kept if x.reason is None} == {f"2026-03-01/12{m:02}.log" for m in range(0, 30, 5)}
    assert lane.aggregates()[(0.0, "a")] == (5, 0 + 2 + 4 + 6 + 8, 8)


def test_duplicate_landing_is_found_repaired_and_proved(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(20)])
    replay(lane)
    lane.land([event(22, amount=100)])
    assert lane.aggregates()[(0.0, "a")] == (10, 20, 4), "near-real-time aggregates count twice"
    detection = lane.detect()
    assert {str(f.window): [x.kind for x in f.findings] for f in detection.failed} == {
        f"2026-03-01T12:{m:02}Z": [Kind.DUPLICATED] for m in (0, 5, 10, 15)
    }
    assert detection.certified == 1
    wrong, untouched = lane.aggregates(), lane.aggregates()[(20.0, "a")]
    confirmation = lane.repair(detection.request_id)
    assert (len(confirmation.confirmed), confirmation.duplicates, confirmation.lines_read) == (4, 20, 40)
    assert lane.aggregates() == {
        **{(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10, 15)}, (20.0, "a"): untouched
    }  # fmt: skip
    kept = lane.query(
        "SELECT aggregates FROM onceover.revision_row WHERE pipeline = %s ORDER BY window_start", [lane.name]
    )
    rows = [(row["aggregates"]["kind"], row["aggregates"]["amount_sum"]) for row in kept]
    assert rows == [("a", wrong[(float(m), "a")][1]) for m in (0, 5, 10, 15)], "what was overwritten is kept"
    again = lane.detect()
    assert (again.judged, again.request_id) == (0, None)
    with lane.ledger() as ledger:
        (seen,) = (s for s in metric_values.read_signals(ledger, timedelta(hours=1)) if s.pipeline == lane.name)
    assert (seen.too_many, seen.too_few, seen.kafka_partitions[0].landed) == (20, 0, 41)


def test_offset_store_that_does_not_answer_is_retried_safely(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(5)])
    with lane.driver() as driver:
        land_without_commit(driver)
        driver.turn()
        assert driver._offsets.store.load([0]).offsets == {0: 5}
    lane.ingest()
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1)}


def test_first_start_at_latest_counts_from_there_for_good(lanes: Lanes) -> None:
    lane = lanes(first_start="latest")
    lane.produce([event(n) for n in range(5)])
    with lane.driver() as driver:
        assert driver.turn().records == 0
    lane.produce([event(n) for n in range(5, 8)])
    with lane.driver() as driver:  # a new driver, and nothing was ever committed: what came in between is not skipped
        assert driver.turn().records == 3
    lane.ingest()
    assert lane.aggregates() == {(5.0, "a"): (3, 3, 1)}


def test_repair_forced_twice_changes_no_row_and_no_revision(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(10)])
    lane.detect()
    before = lane.aggregates()
    for _ in range(2):
        detection = lane.detect(minutes(0, 10), force=True)
        assert len(lane.repair(detection.request_id).confirmed) == 2
    assert lane.aggregates() == before
    row = lane.query("SELECT max(revision) AS r FROM onceover.window WHERE pipeline = %s", [lane.name])[0]
    assert row == {"r": 0}


def test_late_record_reopens_its_window_certified_without_repair(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(10)])
    lane.detect()
    lane.land([event(1, amount=5)])
    detection = lane.detect()
    assert (detection.judged, detection.certified, detection.request_id) == (1, 1, None)
    found = lane.query("SELECT kind, resolution FROM onceover.finding WHERE pipeline = %s", [lane.name])
    assert [(f["kind"], f["resolution"]) for f in found] == [("late", "certified from the ledger")]
    assert lane.aggregates()[(0.0, "a")][0] == 6


def test_lines_of_a_failed_attempt_are_unaccounted_bytes_only(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(5)])
    kill_after(lane, Step.APPENDED)
    assert len(lane.lines()) == 5, "the attempt's lines are there"
    lane.ingest()
    detection = lane.detect()
    assert [f.kind for f in detection.failed[0].findings] == [Kind.UNACCOUNTED_BYTES]
    confirmation = lane.repair(detection.request_id)
    assert (confirmation.duplicates, len(confirmation.confirmed)) == (5, 1)
    assert lane.aggregates() == {(0.0, "a"): (5, 10, 4)}


def test_bytes_of_any_record_return_unchanged(lanes: Lanes) -> None:
    lane = lanes(BYTES)
    values = [
        b"",
        None,
        b"\n",
        b"\t\r\n\\N",
        b"\xff\xfe\x00\x80",
        bytes(range(256)) * 8,
        b"x" * 1_000_000,
        "ü€".encode(),
    ]
    headers = [("a=b;c", b"\\=\\;\n\xff"), ("none", None), ("", b"")]
    for key in (None, b"", b"\tk\n\xc3"):
        lane.produce(values, key=key, headers=headers, timestamp=NOON_MS)
    lane.ingest()
    kept = {(x.record.source.kafka_partition, x.record.offset): x.record for _, x in lane.lines()}
    assert {at: (r.key, r.value) for at, r in kept.items()} == lane.log()
    assert all(escape_headers(list(r.headers)) == escape_headers(headers) for r in kept.values())
    detection = lane.detect(minutes(0, 5), force=True)
    assert len(lane.repair(detection.request_id).confirmed) == 1
    assert lane.aggregates() == {(0.0,): (24, 3 * sum(len(v) for v in values if v is not None))}


BYTES = """
[contract]
topic = "{topic}"
window_minutes = {minutes}
format = "binary"
event_time = "kafka_timestamp"
tombstone = "record"
[contract.measures]
records = {{ count = "*" }}
bytes = {{ sum = "octet_length(value)" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "{idle_after}"
"""
