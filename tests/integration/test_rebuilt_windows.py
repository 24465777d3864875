"""A ledger rebuilt from raw: expired and compacted windows, gaps, records in two windows, and runs that failed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.integration.compaction import expire_text, list_states, make_certified_lane, read_compacted, spoil_rows
from tests.integration.events import FIVE_PAST, NOON, NOON_MS, event, moment
from tests.integration.extras import accept_gap
from tests.integration.lane import Lanes
from tests.integration.planted_failures import (
    append,
    delete_window,
    encode_line,
    expire,
    list_gaps,
    lose_ledger,
    minutes,
    produce_transaction,
    read_certificates,
)
from tests.integration.test_ledger_rebuild import certify
from tests.raw_lines import encode_append

from onceover.config.endpoints import address
from onceover.detection.holes import accept_loss
from onceover.errors import TransientError, UsageError
from onceover.ledger import frontiers, losses, rebuilt_rows
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import connect
from onceover.ledger.drivers import as_driver
from onceover.ledger.landings import read_landings
from onceover.ledger.root import RootRefusedError
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, intersect
from onceover.model.raw_file import RawContents, RawFile, Run
from onceover.recovery.rebuild_ledger import KnownLogs, write_ledger
from onceover.spark.contract_check import check_contract

pytestmark = pytest.mark.stack


def test_rows_without_raw_stay_when_a_late_record_lands(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    certify(lane)
    before = lane.aggregates()
    delete_window(lane, 0)  # as retention does
    expire(lane, 5)
    lose_ledger()
    result = lane.rebuild()
    assert (result.written.windows, result.written.expired) == (1, 1)
    (hole,) = result.written.holes
    with lane.open() as context:
        assert accept_loss(context, hole, minutes(0, 5), "test", "retention deleted it")[0] == (hole,)
    lane.land([event(2, amount=100)])
    lane.repair_detected()
    assert list_states(lane) == ["expired", "certified"]
    assert lane.aggregates() == before | {(0.0, "a"): (6, 110, 100)}


@pytest.mark.rare
def test_rows_outlive_raw_of_a_late_record_alone(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    certify(lane)
    assert expire_text(lane) == 2
    lane.land([event(2, amount=100)])
    before = lane.aggregates()
    assert before[(0.0, "a")] == (6, 110, 100), "five expired, and the late one"
    expire(lane, 10)
    for _ in range(2):
        lose_ledger()
        result = lane.rebuild()
        assert (result.written.windows, result.written.expired, result.written.records) == (1, 2, 1)
        accept_gap(lane, minutes(0, 5))
        certify(lane)
        assert list_states(lane) == ["expired", "expired"]
        assert lane.aggregates() == before


@pytest.mark.rare
def test_rows_of_a_half_lost_window_are_never_replaced(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    certify(lane)
    delete_window(lane, 0)
    expire(lane, 2)  # the log begins in the middle of the window without raw
    lose_ledger()
    assert lane.rebuild().written.expired == 1
    lane.turn()
    lane.repair_detected()  # reads again what the log holds: records 2 to 4
    accept_gap(lane, minutes(0, 5))
    lane.ingest()
    ((_, why),) = lane.repair_detected().failed
    assert why.startswith("raw gives 3 records, and not the rows that were there")
    assert lane.aggregates()[(0.0, "a")][0] == 8, "five, and three that were counted again"
    assert list_states(lane) == ["expired", "certified"]
    assert "perhaps twice" in lane.explain_text(0)
    _, done = lane.reread(0)
    assert done is not None
    assert (done.failed[0][1], lane.detect().request_id) == (why, None)
    lose_ledger()
    assert lane.rebuild().written.expired == 1, "raw has a part of them now"
    accept_gap(lane, minutes(0, 5))
    certify(lane)
    assert list_states(lane) == ["expired", "certified"]
    assert lane.aggregates()[(0.0, "a")][0] == 8


@pytest.mark.rare
def test_rows_read_again_by_ingest_are_certified_by_reread(lanes: Lanes) -> None:
    lane = lanes(offset_store="postgres")
    lane.produce([event(n, amount=n) for n in range(10)])
    before, aggregates = certify(lane), lane.aggregates()
    delete_window(lane, 5)  # the last offsets: ingest reads on from here
    lose_ledger()
    assert lane.rebuild().written.expired == 1
    assert len(certify(lane)) == 1
    assert lane.aggregates() == aggregates | {(5.0, "a"): (10, 70, 9)}, "counted again, and no repair touches it"
    assert list_states(lane) == ["certified", "expired"]
    assert f'onceover reread {lane.name} 2026-03-01T12:05Z --reason "..."' in lane.explain_text(5)
    assert "perhaps twice" in lane.explain_text(5)
    _, done = lane.reread(5)
    assert done is not None
    assert done.confirmed == ("2026-03-01T12:05Z",)
    assert read_certificates(lane) == before
    assert lane.aggregates() == aggregates
    assert lane.audit()["equal"]


@pytest.mark.largest
def test_compacted_windows_are_rebuilt_from_their_files(lanes: Lanes) -> None:
    lane = make_certified_lane(lanes)
    aggregates = lane.aggregates()
    assert all(result.why is None for result in lane.compact())
    assert expire_text(lane) == 2
    before = certify(lane)
    assert (len(before), len(read_compacted(lane)), len(lane.lines())) == (2, 2, 0)
    lane.produce([event(1, amount=7)])  # a late record: text beside the compacted file
    lane.ingest()
    with_late = lane.aggregates()
    lose_ledger()
    result = lane.rebuild()
    assert (result.written.windows, result.written.records, result.written.holes) == (2, 601, ())
    spoil_rows(lane)
    after = certify(lane)
    assert len(after) == 2
    assert after.keys() == before.keys()
    assert lane.aggregates() == with_late != aggregates
    assert lane.audit()["equal"]


@pytest.mark.rare
def test_expired_gaps_are_holes_that_one_command_accepts(lanes: Lanes) -> None:
    lane = lanes(offset_store="postgres")
    lane.produce([event(n, amount=n) for n in range(40)])
    certify(lane)
    for minute in (0, 10, 20):
        delete_window(lane, minute)
    expire(lane, 30)
    lose_ledger()
    with connect(address("postgres"), "test") as ledger:
        ledger.execute(f"DELETE FROM aggregates.{lane.name}")
    found = lane.rebuild()
    assert [(hole.start, hole.end) for hole in found.written.holes] == [(0, 5), (10, 15), (20, 25)]
    assert list_gaps(lane) == [(0, 5, "expired"), (10, 15, "expired"), (20, 25, "expired")]
    lane.produce([event(41)])
    with lane.driver() as driver:
        assert driver.turn().records == 1, "reading goes on behind what raw holds"
        assert not driver.turn().every_window_closed
    span = OffsetRange(found.written.holes[0].source, 0, 25)
    with lane.open() as context:
        with pytest.raises(UsageError, match="has to begin and end"):
            accept_loss(context, OffsetRange(span.source, 0, 26), minutes(0, 25), "test", "gone")
        lost, reopened = accept_loss(context, span, minutes(0, 25), "test", "gone")
    assert [(r.start, r.end) for r in lost] == [(0, 5), (10, 15), (20, 25)]
    assert len(reopened) == 2, "the windows between them"
    certify(lane)
    assert {(key, value[0]) for key, value in lane.aggregates().items()} == {
        ((minute, "a"), count) for minute, count in ((5.0, 5), (15.0, 5), (25.0, 5), (30.0, 5), (35.0, 5), (40.0, 1))
    }


@pytest.mark.rare
def test_ten_thousand_gaps_are_accepted_at_once(lanes: Lanes) -> None:
    lane, many = lanes(), 10_000
    source = KafkaPartition("0badcafe", 0)
    with lane.ledger() as ledger:
        registered = register_pipeline(ledger, lane.pipeline, check_contract(lane.spark, lane.pipeline.contract))
        file = RawFile("/unread.log", 100 * many, window_start=moment(0))
        runs = tuple(
            Run(OffsetRange(source, 2 * n, 2 * n + 1), ((0, Digest(1, n)),), None, None) for n in range(many + 1)
        )
        with as_driver(ledger, lane.name, "test") as epoch:
            written = write_ledger(ledger, epoch, registered, [file], RawContents((runs,)), KnownLogs())
        assert (written.batches, written.landings, len(written.holes)) == (11, 11, many)
    with lane.open() as context:
        span = OffsetRange(source, 1, 2 * many)
        lost = intersect(written.holes, [span])
        began = time.monotonic()
        assert losses.record_loss(context.ledger, lane.name, lost, NOON, FIVE_PAST, "test", "markers") == [NOON]
        assert time.monotonic() - began < 60
        assert frontiers.read_holes(context.ledger, lane.name) == []
        landings = context.ledger.execute("SELECT landing_id FROM onceover.landing WHERE pipeline = %s", [lane.name])
        claimed = read_landings(context.ledger, [row["landing_id"] for row in landings])
    assert {len(landing.exact) for landing in claimed.values()} == {1_000, 0}, "a single range needs no list"


@pytest.mark.rare
def test_control_markers_in_the_log_are_no_holes(lanes: Lanes) -> None:
    lane = lanes()
    for number in range(3):
        produce_transaction(lane, [event(n) for n in range(number, number + 3)], commit=number != 1)
    certify(lane)
    before = lane.aggregates()
    lose_ledger()
    assert lane.rebuild().written.holes == ()
    lane.turn()
    lane.repair_detected()  # reads the last marker, before which the stored offset is no longer
    certify(lane)
    assert lane.aggregates() == before


@pytest.mark.rare
def test_half_registered_ledger_is_rebuilt_whole(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(20)])
    before, aggregates = certify(lane), lane.aggregates()
    generation = lane.source().generation
    lose_ledger()
    with pytest.raises(RootRefusedError, match="ledger rebuild"), lane.driver():
        pass
    with lane.ledger() as ledger:  # as a driver does that dies before its first batch
        register_pipeline(ledger, lane.pipeline, check_contract(lane.spark, lane.pipeline.contract))
        ledger.execute(
            "INSERT INTO onceover.kafka_partition (pipeline, generation, kafka_partition, topic_id, origin, frontier, "
            "reach, end_offset) VALUES (%s, %s, 0, '', 20, 20, 20, 20)", [lane.name, generation],
        )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuilt_rows, "record_compacted_files", _fail)
        with pytest.raises(TransientError):
            lane.rebuild()
    with lane.ledger() as ledger:
        assert rebuilt_rows.count_landed_batches(ledger, lane.name) == 0, "a failed run leaves nothing behind"
    assert lane.rebuild().written.records == 20
    with pytest.raises(UsageError, match="landed batches"):
        lane.rebuild()
    assert certify(lane) == before
    assert lane.aggregates() == aggregates


@pytest.mark.rare
@pytest.mark.parametrize("is_same", [True, False], ids=["one record", "two contents"])
def test_id_in_two_windows_is_certified_after_a_rebuild(lanes: Lanes, is_same: bool) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(10)])
    certify(lane)
    (line,) = (each for _, each in lane.lines() if each.record.offset == 2)
    dated_later = encode_append(replace(line, event_ms=NOON_MS + 7 * 60_000))  # as a version would that dates it so
    append(lane, 5, dated_later if is_same else encode_line(lane, 2, event(7, amount=90)))
    lose_ledger()
    assert lane.rebuild().written.records == 10
    assert len(certify(lane)) == 2
    alone = {(0.0, "a"): (4, 8, 4), (5.0, "a"): (6, 37, 9)}
    assert lane.aggregates() == (alone if is_same else {(0.0, "a"): (5, 10, 4), (5.0, "a"): (6, 125, 90)})


def _fail(*_: object) -> None:
    raise TransientError("the database went away")
