"""Repairs, detections and schedules refuse some windows, and go on with the others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.planted_failures import land_twice, minutes

from onceover.errors import ContractChangedError
from onceover.repair.proof import prove

pytestmark = pytest.mark.stack


def test_repairs_of_one_window_publish_once(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n) for n in range(5)])
    counts = (
        "SELECT (SELECT count(*) FROM onceover.finding) AS f, (SELECT count(*) FROM onceover.repair) AS r, "
        "(SELECT count(*) FROM onceover.certificate) AS c"
    )
    before = lane.query(counts)
    (row,) = lane.plan(minutes(0, 5))
    assert lane.query(counts) == before, "a dry run writes nothing"
    assert (row.lines, row.counted, row.distinct, row.as_dict()["change"]) == (10, 10, 5, -5)
    assert row.bytes == len(lane.raw()["2026-03-01/1200.log"])

    first, second = lane.detect(), lane.detect(minutes(0, 5))
    assert first.request_id
    assert second.request_id
    assert len(lane.repair(first.request_id).confirmed) == 1
    late = lane.repair(second.request_id)
    assert (late.confirmed, [why for _, why in late.unneeded]) == ((), ["certified meanwhile"])


@pytest.mark.rare
def test_window_held_by_another_repair_is_not_reported_done(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n) for n in range(5)])
    request = lane.detect().request_id or 0
    lane.query(
        "UPDATE onceover.\"window\" SET claimed_by = 'request:9', claimed_until = now() + interval '1 minute' "
        "WHERE pipeline = %s",
        [lane.name],
    )
    done = lane.repair(request)
    assert (done.left, done.unneeded) == ((("2026-03-01T12:00Z", "being repaired by request:9"),), ())


@pytest.mark.rare
def test_window_that_changes_during_its_repair_is_not_published(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n) for n in range(5)])
    request = lane.detect().request_id or 0
    lane.produce([event(1)])
    with pytest.MonkeyPatch.context() as patch:

        def land_first(*arguments: Any) -> object:
            patch.undo()
            lane.ingest()
            return prove(*arguments)

        patch.setattr("onceover.repair.job.prove", land_first)
        assert lane.repair(request).confirmed == ()
    assert lane.aggregates() == {(0.0, "a"): (11, 11, 1)}, "nothing was overwritten"
    assert len(lane.repair_detected().confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (6, 6, 1)}


def test_corrupt_file_fails_its_own_window_and_then_blocks_it(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n) for n in range(10)])
    path = lane.window_file(0)
    client = lane.hdfs()
    content = lane.read(path)
    client.write(path, content.replace(b'"amount": 1', b'"amount": 9'), overwrite=True)  # same length, wrong hash
    for tries in range(1, 4):
        detection = lane.detect()
        confirmation = lane.repair(detection.request_id)
        assert len(confirmation.confirmed) == (1 if tries == 1 else 0), "the other window goes on"
        assert len(confirmation.failed) == 1
        assert len(confirmation.newly_blocked) == (1 if tries == 3 else 0)
        assert "raw holds 0 of 5" in confirmation.failed[0][1]
    after = lane.detect()
    assert (after.blocked, after.request_id) == (1, None)
    # A person who has put the file back asks for it by name: that lifts the block.
    client.write(path, content, overwrite=True)
    asked = lane.detect(minutes(0, 5))
    assert len(lane.repair(asked.request_id).confirmed) == 1
    assert lane.aggregates()[(0.0, "a")] == (5, 5, 1)


def test_changed_contract_is_refused_by_name(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(0)])
    lane.toml.write_text(lane.toml.read_text().replace("window_minutes = 5", "window_minutes = 10"))
    with pytest.raises(ContractChangedError, match="window_minutes"):
        lane.detect()
