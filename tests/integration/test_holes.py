"""Skipped offsets on the real stack: why each is missing, what is read again, and what a person has to decide."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from tests.integration.events import event, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import (
    count_certified,
    delete_topic,
    expire,
    fail,
    list_gaps,
    minutes,
    produce_transaction,
    read_end,
    skip_to,
)

from onceover.detection import holes
from onceover.detection.detect import Detection
from onceover.errors import UsageError
from onceover.explain.page.strip import read_strip
from onceover.ledger import frontiers, read_again
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange, parse_range
from onceover_local.stack.process import wait_for

pytestmark = pytest.mark.stack


def test_lost_records_are_found_landed_again_and_repaired(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    lane.turn()
    lane.produce([event(n, amount=n) for n in range(10, 20)])
    skip_to(lane, 17)
    with lane.driver() as driver:
        progress = [driver.turn(), driver.turn()][-1]
    assert not progress.every_window_closed, "windows beyond the hole wait, although the topic is idle"
    assert progress.lag == {0: 0}, "skipped offsets are a hole, not lag"
    assert list_gaps(lane) == [(10, 17, "lost")]

    detection = lane.detect()
    (finding,) = detection.findings
    (gap,) = cast("list[dict[str, Any]]", finding.evidence["gaps"])
    assert (finding.kind, gap["reason"], gap["offsets"][2:]) == (Kind.HOLE, "lost", [10, 17])
    assert gap["likely_windows"] == [f"2026-03-01T12:{m:02}Z" for m in (0, 5, 15)]
    assert (len(detection.read_again), detection.judged, detection.open) == (1, 0, 3)
    lane.repair(detection.request_id)
    assert list_gaps(lane) == []
    lane.ingest()
    lane.detect()
    assert lane.aggregates() == {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10, 15)}
    assert count_certified(lane) == 4
    marked = lane.query(
        "SELECT b.scheduling_delay_ms, r.start_offset, r.end_offset FROM onceover.batch b "
        "JOIN onceover.batch_range r USING (batch_id) WHERE b.pipeline = %s AND b.scheduling_delay_ms IS NULL",
        [lane.name],
    )
    open_findings = lane.query(
        "SELECT kind FROM onceover.finding WHERE pipeline = %s AND resolved_at IS NULL", [lane.name]
    )
    assert [tuple(row.values()) for row in marked] == [(None, 10, 17)]
    assert open_findings == []
    assert set(lane.ids()) == lane.log().keys()


def test_offsets_that_a_cut_log_reaches_again_are_no_loss(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(5)])
    beyond = f"{lane.source()}:5-8"
    # as an ingest does that stored offsets past the end of a log
    lane.query("UPDATE onceover.kafka_partition SET reach = 8 WHERE pipeline = %s", [lane.name])
    with pytest.raises(UsageError, match="ends at 5"):
        accept(lane, parse_range(beyond))
    lane.land([event(n) for n in range(5, 8)])
    assert list_gaps(lane) == []
    lane.query("UPDATE onceover.kafka_partition SET reach = 12 WHERE pipeline = %s", [lane.name])
    delete_topic(lane)
    assert list_gaps(lane) == [(8, 12, "expired")], "a deleted topic holds nothing"
    accept(lane, parse_range(beyond.replace("5-8", "8-12")))
    assert list_gaps(lane) == []


@pytest.mark.rare
def test_running_driver_reads_again_what_a_repair_requests(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(10)])
    with lane.driver() as driver:
        driver.turn()
        driver._offsets.commit({0: 10})
    lane.produce([event(n) for n in range(10, 15)])
    skip_to(lane, 15)
    with lane.driver() as driver:
        driver.turn()
        request = lane.detect().request_id or 0
        with lane.ledger() as ledger:
            assert len(read_again.list_wanted(ledger, lane.name, request)) == 1
        again = lane.detect()
        assert (again.request_id, again.read_again) == (None, ()), "no Spark starts for what a live driver reads"
        assert driver.turn().records == 5
        with lane.ledger() as ledger:
            assert read_again.list_wanted(ledger, lane.name) == ()
        assert driver._offsets.store.load([0]).offsets == {0: 15}, "a hole moves no stored offset"
    lane.ingest()
    lane.detect()
    assert count_certified(lane) == 3


def list_batches(lane: Lane) -> list[tuple[bool, int]]:
    """Return of each landed batch whether it reads again, and its ranges."""
    rows = lane.query(
        "SELECT b.scheduling_delay_ms IS NULL AS again, count(*) AS n FROM onceover.batch b "
        "JOIN onceover.batch_range r USING (batch_id) WHERE b.pipeline = %s AND b.state = 'landed' "
        "GROUP BY b.batch_id ORDER BY b.batch_id",
        [lane.name],
    )
    return [(row["again"], row["n"]) for row in rows]


@pytest.mark.rare
def test_hole_read_is_no_larger_than_a_fresh_batch(lanes: Lanes) -> None:
    lane = lanes(partitions=3, most=6)
    for kafka_partition in range(3):
        lane.produce([event(n) for n in range(8)], kafka_partition)
    with lane.driver() as driver:
        driver.turn()
        driver._offsets.store.save(dict.fromkeys(range(3), 8), "")
    with lane.driver() as driver:
        driver.turn()
        lane.detect()
        for kafka_partition in range(3):
            lane.produce([event(n) for n in range(4)], kafka_partition)
        read = [driver.turn().records for _ in range(5)]
    assert read == [6] * 5
    assert list_batches(lane)[1:] == [(True, 3), (False, 3), (True, 3), (False, 3), (True, 3)]


def test_expired_offsets_wait_for_a_decision_then_certified(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(5)])
    lane.turn()
    lane.produce([event(n) for n in range(5, 20)])
    expire(lane, 12)
    lane.turn(3)
    assert list_gaps(lane) == [(5, 12, "expired")]
    detection = lane.detect()
    assert (detection.request_id, detection.certified, detection.read_again) == (None, 0, ())
    lost = OffsetRange(lane.source(), 5, 12)
    with lane.ledger() as ledger:
        with pytest.raises(UsageError, match="not a loss that can be accepted"):
            accept(lane, OffsetRange(lane.source(), 5, 13))
        assert accept(lane, lost) == [moment(10)]
        assert frontiers.read_holes(ledger, lane.name) == []
    lane.ingest()
    lane.detect()
    with lane.ledger() as ledger:
        stated = ledger.execute(
            """
            SELECT c.verdict, (SELECT coalesce(sum(upper(r) - lower(r)), 0)::int FROM unnest(c.losses) r) AS losses
            FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
            WHERE w.pipeline = %s ORDER BY c.window_start
            """,
            [lane.name],
        ).fetchall()
        strip = read_strip(ledger, lane.name, moment(0), moment(20))
    assert strip["states"] == "C.LC"
    assert [(row["verdict"], row["losses"]) for row in stated] == [
        ("exact", 0), ("exact but for accepted losses", 1), ("exact", 0)
    ]  # fmt: skip
    text = lane.explain_text(10)
    assert "certified but for a loss that was accepted" in text
    assert f"{lost}, 7 offsets that Kafka no longer holds" in text
    assert "certified: each record is counted exactly once" in lane.explain_text(0)


@pytest.mark.rare
def test_aborted_records_and_markers_raise_no_alarm(lanes: Lanes) -> None:
    lane = lanes(most=4)
    produce_transaction(lane, [event(n) for n in range(5)], commit=True)
    produce_transaction(lane, [event(n) for n in range(3)], commit=False)
    lane.ingest()
    assert lane.detect().certified == 1
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1)}
    produce_transaction(lane, [event(n) for n in range(3)], commit=False)
    skip_to(lane, read_end(lane))
    lane.turn()
    assert [reason for _, _, reason in list_gaps(lane)] == ["aborted", "control marker"]
    detection = lane.detect()
    assert detection.findings == ()
    lane.repair(detection.request_id)
    assert list_gaps(lane) == []
    assert lane.query("SELECT 1 FROM onceover.finding WHERE pipeline = %s AND window_start IS NULL", [lane.name]) == []


@pytest.mark.rare
def test_hole_over_transactions_is_one_loss_and_read_again(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    lane.produce([event(0)])
    lane.turn()
    for minute in range(6):
        produce_transaction(lane, [event(minute)], commit=True)
    end = read_end(lane)
    skip_to(lane, end)
    lane.turn()

    def list_losses(detection: Detection) -> list[tuple[int, int, str]]:
        rows = [row for f in detection.findings for row in cast("list[dict[str, Any]]", f.evidence["gaps"])]
        return [(row["offsets"][2], row["offsets"][3], row["reason"]) for row in rows]

    assert len(list_gaps(lane)) == end - 1, "a run for each transaction, and one for each marker"
    assert list_losses(lane.detect()) == [(1, end - 1, "lost")]
    with monkeypatch.context() as patch:
        patch.setattr(holes, "MAX_READ", 3)
        assert list_losses(lane.detect()) == [(1, end, "lost")], "what detection does not read counts as lost"
        patch.setattr(holes, "probe_holes", fail)
        detection = lane.detect()
    assert "away" in str(detection.findings[0].evidence["not_asked"])
    assert len(detection.read_again) == 1, "requested before anything is read"
    lane.repair(detection.request_id)
    lane.ingest()
    assert (list_gaps(lane), lane.detect().findings) == ([], ())
    assert lane.aggregates() == {(0.0, "a"): (6, 6, 1), (5.0, "a"): (1, 1, 1)}


COMPACTED = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01", "retention.ms": "-1"}


@pytest.mark.rare
def test_compacted_records_raise_no_alarm_and_the_rest_is_reread(lanes: Lanes) -> None:
    lane = lanes(topic_config=COMPACTED)
    lane.produce([event(0)], key=b"same")
    lane.turn()
    now_ms = int(time.time() * 1000)
    for n in range(1, 6):  # in segments of their own, for they are seconds apart; the last one is never compacted
        lane.produce([event(n)], key=b"same", timestamp=now_ms + n * 1000)
    wait_for(lambda: len(lane.log()) <= 2, 60, "the broker to compact")
    left = sorted(offset for _, offset in lane.log())
    skip_to(lane, 6)
    lane.turn()
    found = list_gaps(lane)
    assert [reason for _, _, reason in found] == ["compacted", "lost"]
    assert (found[0][:2], found[1][:2]) == ((1, left[0]), (left[0], 6))
    lane.repair_detected()
    lane.ingest()
    assert (list_gaps(lane), lane.detect().findings) == ([], ())
    assert sum(cast(int, row[0]) for row in lane.aggregates().values()) == 1 + len(left), (
        "raw keeps what Kafka compacted away"
    )
    audit = lane.audit()
    assert (audit["equal"], audit["records"]) == (True, len(left))
    assert [row["ids"]["compacted away in Kafka"]["count"] for row in audit["rows"] if row["ids"]] == [1]


def accept(lane: Lane, lost: OffsetRange) -> list[object]:
    windows = minutes(10, 15)
    with lane.open() as context:
        return list(holes.accept_loss(context, lost, windows, "test", "gone")[1])
