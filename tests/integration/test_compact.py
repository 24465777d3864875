"""Certified windows compressed beside their text: smaller, and each record once."""

from __future__ import annotations

import json
import logging
import re

import pytest
from tests.integration.compaction import (
    EACH,
    decompress,
    make_certified_lane,
    read_compacted,
)
from tests.integration.events import FIVE_PAST, NOON
from tests.integration.lane import Lane, Lanes
from tests.integration.program import as_json, run

from onceover.compaction import job
from onceover.errors import BusyError
from onceover.ledger import compactions
from onceover.lines.line_format import decode
from onceover.model.window import to_ms

pytestmark = pytest.mark.stack


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    return make_certified_lane(lanes)


@pytest.mark.largest
def test_compaction_writes_each_record_once_to_smaller_files(lane: Lane) -> None:
    before = lane.raw()
    planned = as_json("compact", lane.name, "--dry-run")
    assert (planned["due"], planned["compacted"]) == (2, 0)
    assert as_json("compact", lane.name, "--older-than", "50d")["due"] == 0
    within = ("--from", "2026-03-01T12:05Z", "--to", "2026-03-01T12:10Z")
    assert as_json("compact", lane.name, "--dry-run", *within)["due"] == 1
    assert lane.raw() == before, "a dry run"

    done = as_json("compact", lane.name, "--reason", "room")
    assert (done["compacted"], done["records"], done["failed"]) == (2, 2 * EACH, 0)
    made = read_compacted(lane)
    assert {name.split(".")[0] for name in made} == {"2026-03-01/1200", "2026-03-01/1205"}
    assert {name: text for name, text in lane.raw().items() if name not in made} == before, "and nothing else"
    assert done["bytes"] == sum(map(len, made.values()))
    assert done["bytes"] * 5 < done["text_bytes"] == sum(map(len, before.values()))

    lines = {name: decompress(content).splitlines() for name, content in made.items()}
    assert all(held == sorted(held) for held in lines.values()), "in the order of IDs"
    texts = {line for content in before.values() for line in content.splitlines() if line}
    assert {line for held in lines.values() for line in held} == texts, "byte for byte"
    held = [decode(line).record for held in lines.values() for line in held]
    assert {(r.source.kafka_partition, r.offset): (r.key, r.value) for r in held} == lane.log()
    assert len(held) == 2 * EACH

    copies = {lane.hdfs().status(f"{lane.layout.raw_root}/{lane.name}/{name}")["replication"] for name in lane.raw()}
    assert len(copies) == 1, "as many of the one as of the other"

    assert as_json("compact", lane.name)["due"] == 0, "twice is once"
    assert all(file.path.endswith(".log") for file in lane.files().list_files())
    kept = lane.query("SELECT why FROM onceover.action WHERE pipeline = %s AND kind = 'compact raw'", [lane.name])
    assert [row["why"] for row in kept] == ["room"]
    assert "beside the text" in lane.explain_text(0)


@pytest.mark.largest
def test_long_work_says_what_it_reads_and_what_is_left(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job, "BYTES_AT_ONCE", 1)
    caplog.set_level(logging.INFO, "onceover")
    assert lane.verify(0)["equal"]
    assert lane.audit()["equal"]
    assert [result.why for result in lane.compact()] == [None, None]
    for pattern in (
        r"reading window 2026-03-01T12:00Z, 0\.\d MiB",
        r"reading 600 offsets of Kafka's log and 2 files of raw, 0\.\d MiB",
        r"reading 1 window files, 0\.\d MiB",
        r"done with 1 of 2 windows, 300 of 600 records; 0\.\d MiB read; about \d+ s left",
    ):
        assert any(re.fullmatch(pattern, said) for said in caplog.messages), (pattern, caplog.messages)


@pytest.mark.largest
def test_compaction_refuses_and_reports_text_unlike_certified(lane: Lane) -> None:
    path = lane.window_file(0)
    text = lane.read(path)
    lane.overwrite(path, text.replace(b'"amount": 4}', b'"amount": 5}'))
    done = run("compact", lane.name, "--json")
    assert done.returncode == 1, done.stderr
    output = json.loads(done.stdout)
    assert (output["compacted"], output["failed"]) == (1, 1)
    assert "raw differs from its certificate: landing" in output["windows"][0]["why"]
    assert {name.split(".")[0] for name in read_compacted(lane)} == {"2026-03-01/1205"}
    assert [one.due.window_start for one in lane.compact()] == [NOON], "nothing was noted of it"


@pytest.mark.largest
def test_compaction_leaves_a_window_that_changes_meanwhile(lane: Lane) -> None:
    with lane.ledger() as ledger:
        (noon, *_) = compactions.list_compactable(ledger, lane.name, 0, None, None)
        ledger.execute(
            'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
            [lane.name, NOON],
        )
        assert not compactions.record_compaction(ledger, lane.name, noon, 1, lambda: pytest.fail("it is moved"))
    assert [to_ms(one.due.window_start) for one in lane.compact()] == [to_ms(FIVE_PAST)]


@pytest.mark.largest
def test_compaction_of_a_pipeline_runs_in_one_process_only(lane: Lane) -> None:
    with lane.ledger() as one, lane.ledger() as other:
        compactions.hold_compaction(one, lane.name)
        compactions.hold_compaction(other, "another pipeline")
        with pytest.raises(BusyError, match="another process compacts"):
            compactions.hold_compaction(other, lane.name, patience_ms=1)
