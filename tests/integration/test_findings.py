"""Each finding planted alone, and several at once: detected, explained to a person, repaired, certified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from tests.integration.compaction import list_states
from tests.integration.events import event, moment
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import append, copy_line, encode_line, land_twice, minutes

from onceover.context import PipelineContext
from onceover.explain.page.strip import read_strip
from onceover.fault_points import Step
from onceover.ledger import expiries
from onceover.model.finding_kinds import Kind
from onceover.repair.job import freeze
from onceover.spark.hdfs_leases import Leases

pytestmark = pytest.mark.stack
FIVE = [event(n, amount=n) for n in range(5)]
RIGHT = {(0.0, "a"): (5, 10, 4)}


def land(lane: Lane) -> None:
    lane.land(FIVE)


def duplicate(lane: Lane) -> None:
    land_twice(lane, FIVE)


def append_unaccounted(lane: Lane) -> None:
    land(lane)
    append(lane, 0, b"\n00000001-00000-0000000")


def change_rows(lane: Lane) -> None:
    lane.produce(FIVE)
    kill_after(lane, Step.INCREMENTED)
    lane.ingest()


def append_corrupt_line(lane: Lane) -> None:
    land(lane)
    append(lane, 0, copy_line(lane, 0).replace(b'"amount"', b'"bmount"'))


def append_misplaced_line(lane: Lane) -> None:
    lane.land([*FIVE, event(7, amount=7)])
    append(lane, 0, copy_line(lane, 5))


@dataclass(frozen=True)
class Plant:
    """A failure to plant, how the ledger and the file's length show it, and what a scan shows besides."""

    plant: Callable[[Lane], None]
    seen: AbstractSet[Kind]
    sentence: str
    scanned: AbstractSet[Kind] = frozenset()


BYTES, MISMATCH = Kind.UNACCOUNTED_BYTES, Kind.AGGREGATE_MISMATCH
CORRUPT, STRAY = Kind.CORRUPT_LINE, Kind.STRAY_LINE
PLANTS = [
    Plant(duplicate, {Kind.DUPLICATED}, "Raw holds records more than once"),
    Plant(append_unaccounted, {BYTES}, "an append that never counted", {CORRUPT}),
    Plant(change_rows, {BYTES, MISMATCH}, "do not count what was landed"),
    Plant(append_corrupt_line, {BYTES}, "damaged, by the hash", {CORRUPT}),
    Plant(append_misplaced_line, {BYTES}, "belongs elsewhere, and counts for nothing", {STRAY}),
]


@pytest.mark.rare
@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: p.plant.__name__)
def test_planted_failure_is_detected_explained_and_repaired(lanes: Lanes, plant: Plant) -> None:
    lane = lanes()
    plant.plant(lane)
    detection = lane.detect()
    (failed,) = detection.failed
    assert {f.kind for f in failed.findings} == plant.seen
    sentences = [f["what"] for f in lane.explain(0)["findings"]]
    assert len(lane.repair(detection.request_id).confirmed) == 1
    explained = lane.explain(0)
    assert {Kind(f["kind"]) for f in explained["ledger"]["findings"]} == plant.seen | plant.scanned
    sentences += [join_text(f) for f in explained["ledger"]["findings"]]
    assert any(plant.sentence in what for what in sentences), sentences
    assert (explained["state"], explained["findings"]) == ("certified", [])
    with lane.ledger() as ledger:
        assert read_strip(ledger, lane.name, moment(0), moment(5))["states"] == "R"
    assert lane.aggregates()[(0.0, "a")] == RIGHT[(0.0, "a")]
    assert lane.detect().judged == 0
    assert lane.verify(0)["equal"]


@pytest.mark.rare
def test_certified_window_that_a_repair_cannot_prove_is_damaged(lanes: Lanes) -> None:
    """Neither a length nor a hash shows it: one record's line is where another's was."""
    lane = lanes()
    lane.land(FIVE)
    lane.land([event(7)])
    lane.detect(minutes(0, 5))
    path = lane.window_file(0)
    lines = lane.read(path).splitlines(keepends=True)
    lines[-1] = next(line for line in lines[:-1] if len(line) == len(lines[-1]))
    lane.overwrite(path, b"".join(lines))
    assert lane.explain(0)["state"] == "certified", "only a scan shows it"
    assert lane.repair_detected(minutes(0, 5), force=True).failed
    explained = lane.explain(0)
    assert (explained["state"], [f["kind"] for f in explained["findings"]]) == ("damaged", [Kind.FAILED_PROOF])
    assert any("onceover reread" in (step["command"] or "") for step in explained["next_steps"])
    _, confirmation = lane.reread(0)
    assert confirmation is not None
    assert confirmation.confirmed == ("2026-03-01T12:00Z",)
    explained = lane.explain(0)
    assert (explained["state"], explained["findings"]) == ("certified", [])


def test_findings_of_one_window_are_named_and_repaired_at_once(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [*FIVE, event(7, amount=7)])
    lane.detect()
    lane.produce([event(1, amount=1)])
    kill_after(lane, Step.INCREMENTED)
    lane.ingest()
    append(lane, 0, copy_line(lane, 5))
    append(lane, 0, copy_line(lane, 0).replace(b'"amount"', b'"bmount"'))
    detection = lane.detect()
    kinds = {str(f.window)[-6:]: {x.kind for x in f.findings} for f in detection.failed}
    assert kinds["12:00Z"] == {Kind.DUPLICATED, Kind.LATE, BYTES, MISMATCH}
    lane.repair(detection.request_id)
    found = {Kind(f["kind"]) for f in lane.explain(0)["ledger"]["findings"]}
    assert found == {*kinds["12:00Z"], STRAY, CORRUPT}
    assert lane.aggregates() == {(0.0, "a"): (6, 11, 4), (5.0, "a"): (1, 7, 7)}
    assert lane.audit()["equal"]


def test_missing_file_is_refused_until_it_is_back(lanes: Lanes) -> None:
    lane = lanes()
    land(lane)
    path = lane.window_file(0)
    content = lane.read(path)
    lane.store().remove(path)
    detection = lane.detect()
    assert [f.kind for f in detection.failed[0].findings] == [Kind.MISSING_FILE]
    assert "are missing from the window file" in lane.explain(0)["findings"][0]["what"]
    (failed,) = lane.repair(detection.request_id).failed
    assert "raw holds 0 of 5" in failed[1]
    assert lane.aggregates() == RIGHT, "raw that is gone never empties a window"
    lane.overwrite(path, content)
    assert lane.detect().certified == 1

    lane.store().remove(path)
    again = lane.detect(minutes(0, 5), force=True)
    assert Kind.MISSING_FILE in [f.kind for f in again.failed[0].findings]
    assert lane.repair(again.request_id).confirmed == ()
    assert lane.aggregates() == RIGHT
    assert list_states(lane) == ["damaged"], "its certificate is valid, but raw would not give it again"
    assert lane.explain(0)["state"] == "damaged"
    with lane.ledger() as ledger:
        assert expiries.list_expirable(ledger, lane.name, 0) == [], "retention keeps what is left of its raw"


def test_two_contents_are_refused_until_one_is_taken_out(lanes: Lanes) -> None:
    lane = lanes()
    land(lane)
    path = lane.window_file(0)
    content = lane.read(path)
    append(lane, 0, encode_line(lane, 0, event(0, amount=70)))
    (refused,) = lane.repair_detected().failed
    assert "1 ID with two contents under one leader epoch" in refused[1]
    assert lane.aggregates() == RIGHT
    explained = lane.explain(0)
    assert Kind.FAILED_PROOF in {f["kind"] for f in explained["findings"]}
    assert any("put it back without" in step["text"] for step in explained["next_steps"])
    lane.overwrite(path, content)
    assert len(lane.repair_detected(minutes(0, 5), force=True).confirmed) == 1
    assert (lane.aggregates(), lane.explain(0)["findings"]) == (RIGHT, [])


@pytest.mark.rare
def test_bytes_appended_after_the_freeze_are_left_to_the_next(lanes: Lanes) -> None:
    lane = lanes()
    duplicate(lane)
    request = lane.detect().request_id or 0

    def appended_after(context: PipelineContext, leases: Leases, starts: Sequence[datetime]) -> Mapping[datetime, int]:
        frozen = freeze(context, leases, starts)
        append(lane, 0, b"\nhalf a li")
        return frozen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onceover.repair.job.freeze", appended_after)
        assert len(lane.repair(request).confirmed) == 1
    again = lane.detect(minutes(0, 5))
    assert [f.kind for f in again.failed[0].findings] == [Kind.UNACCOUNTED_BYTES]
    update = "UPDATE onceover.\"window\" SET blocked_at = now(), blocked_why = 'tried too often' WHERE pipeline = %s"
    row = lane.query(update + " RETURNING tries", [lane.name])[0]
    assert row == {"tries": 0}
    assert lane.repair(again.request_id).unneeded == (("2026-03-01T12:00Z", "blocked meanwhile: tried too often"),)
    assert len(lane.repair_detected(minutes(0, 5)).confirmed) == 1


def join_text(finding: dict[str, Any]) -> str:
    from onceover.explain.finding_text import describe_finding

    return describe_finding(finding["kind"], finding["evidence"]).what
