"""A repair's OpenLineage events, written to a file by the provider, beside the contents of raw, log and tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.integration.events import event, moment
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import minutes, replay
from tests.programs import run_python

from onceover.config.endpoints import address
from onceover.model.window import format_moment

pytestmark = [pytest.mark.stack, pytest.mark.rare]
Event = dict[str, Any]


def emit(lane: Lane, folder: Path, *requests: int) -> list[Event]:
    """Return the events in the file that OpenLineage's file transport wrote, one a request."""
    file = folder / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    script = Path(__file__).with_name("emit_lineage.py")
    said = run_python(str(script), lane.name, *map(str, requests), environment=environment)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["job"]["name"] for each in events] == [f"request {request}" for request in requests], said
    return events


def list_revisions(lane: Lane, *window_minutes: int) -> list[tuple[str, int]]:
    """Return the revisions of windows, as readers of the aggregates see them."""
    rows = lane.query(f"SELECT DISTINCT window_start, revision FROM aggregates.{lane.name} ORDER BY 1")
    starts = {format_moment(moment(minute)) for minute in window_minutes}
    return [(at, row["revision"]) for row in rows if (at := format_moment(row["window_start"])) in starts]


def test_repair_lineage_has_files_offsets_and_windows(lanes: Lanes, tmp_path: Path) -> None:
    lane = lanes(partitions=2)
    lane.produce([event(1), event(2), event(2, "b")])
    lane.produce([event(6)], kafka_partition=1)
    replay(lane)  # two windows were landed twice
    lane.produce([event(11)])  # one that was not, in a batch of its own
    lane.ingest()
    request = lane.detect().request_id or 0
    assert len(lane.repair(request).confirmed) == 2
    forced = lane.detect(minutes(0, 10), force=True).request_id or 0
    assert len(lane.repair(forced).confirmed) == 2

    first, second, nothing = emit(lane, tmp_path, request, forced, forced + 1_000_000)

    raw, topic = first["inputs"]
    files = [f"{lane.layout.raw_root}/{lane.name}/2026-03-01/{name}.log" for name in ("1200", "1205")]
    contents = [content for name, content in lane.raw().items() if not name.endswith("1210.log")]
    assert (raw["namespace"], raw["name"]) == (address("hdfs"), f"{lane.layout.raw_root}/{lane.name}")
    assert raw["inputFacets"]["subset"]["inputCondition"] == {"type": "location", "locations": files}
    statistics = raw["inputFacets"]["inputStatistics"]
    assert (statistics["fileCount"], statistics["size"]) == (2, sum(map(len, contents)))
    assert statistics["rowCount"] == sum(1 for content in contents for line in content.split(b"\n") if line) == 8

    assert (topic["namespace"], topic["name"]) == (f"kafka://{address('kafka')}", lane.topic)
    condition = topic["inputFacets"]["subset"]["inputCondition"]
    read = [each["dimensions"] for each in condition["partitions"]]
    assert [(one["kafka_partition"], one["start_offset"], one["end_offset"]) for one in read] == [(0, 0, 3), (1, 0, 1)]
    assert {one["generation"] for one in read} == {lane.source().generation}
    assert sorted(lane.log()) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)], "the last of the first one is not its own"

    (table,) = first["outputs"]
    place = urlsplit(address("postgres"))
    assert table["namespace"] == f"postgres://{place.hostname}:{place.port}"
    assert table["name"] == f"{place.path.removeprefix('/')}.aggregates.{lane.name}"
    written_windows = table["outputFacets"]["subset"]["outputCondition"]["partitions"]
    assert [(one["identifier"], one["dimensions"]["revision"]) for one in written_windows] == list_revisions(lane, 0, 5)
    assert written_windows[0]["dimensions"] == {
        "window_start": "2026-03-01T12:00Z", "window_end": "2026-03-01T12:05Z", "revision": 1,
    }  # fmt: skip
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 3

    assert second["inputs"][0]["inputFacets"] == raw["inputFacets"]
    assert second["outputs"][0]["outputFacets"]["subset"] == table["outputFacets"]["subset"], "no revision of its own"
    assert second["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 0, "the rows were right already"
    assert (nothing["inputs"], nothing["outputs"]) == ([], [])
