"""The main path on a raw store that only tests know, named by a variable: no other part of the product has to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.events import NOON_MS, event
from tests.integration.lane import Lanes
from tests.integration.planted_failures import minutes, replay

from onceover.errors import OnceoverError
from onceover.model.window import from_ms

pytestmark = [pytest.mark.stack, pytest.mark.largest]


def test_main_path_passes_on_a_plugged_in_store(lanes: Lanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_FOLDER", str(tmp_path))
    lane = lanes(more='[storage]\nraw_store = "folder"')
    lane.produce([event(n, amount=n) for n in range(15)])
    replay(lane)
    lane.land([b"rubbish"])
    detection = lane.detect()
    assert len(detection.failed) == 3
    assert len(lane.repair(detection.request_id or 0).confirmed) == 3
    right = {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}
    assert lane.aggregates() == right
    assert lane.verify(from_ms(NOON_MS))["equal"]
    assert all(row["equal"] for row in lane.audit()["rows"])
    files = sorted(file.name for file in (tmp_path / "onceover" / "raw" / lane.name / "2026-03-01").iterdir())
    assert files == ["1200.log", "1205.log", "1210.log"]

    damaged = tmp_path / "onceover" / "raw" / lane.name / "2026-03-01" / "1205.log"
    damaged.write_bytes(damaged.read_bytes()[:200])
    failed = lane.repair(lane.detect(minutes(5, 10), force=True).request_id or 0).failed
    assert [window for window, _ in failed] == ["2026-03-01T12:05Z"]
    _, done = lane.reread(5)
    assert done is not None
    assert done.confirmed == ("2026-03-01T12:05Z",)
    assert lane.aggregates() == right


def test_wrong_plug_ins_are_refused_by_name(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(more='[storage]\nraw_store = "folder"')
    for wrong, said in (
        ("folder", "write NAME=MODULE:CLASS"),
        ("hdfs=a:b", "with a new name"),
        ("", "is no raw store"),
    ):
        monkeypatch.setenv("ONCEOVER_RAW_STORES", wrong)
        with pytest.raises(OnceoverError, match=said):
            lane.ingest()
