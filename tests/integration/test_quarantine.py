"""`onceover quarantine` on what the real ingest put there."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.program import as_json, run

pytestmark = pytest.mark.stack


def test_quarantine_is_listed_by_day_and_reason_and_shown_safely(lanes: Lanes) -> None:
    lane = lanes()
    assert "nothing is in quarantine" in run("quarantine", lane.name, "list").stdout
    lane.produce([event(1), b"\x1b[31m{red", event(2)], key=b"\xff\x00k")
    lane.land([b'{"kind": "x"}', b"long " * 100])
    days = {datetime.now(UTC).date(), date.fromisoformat(as_json("quarantine", lane.name, "list")["days"][0]["day"])}
    listed = as_json("quarantine", lane.name, "list")
    assert listed["records"] == 3
    assert sum(sum(day["reasons"].values()) for day in listed["days"]) == 3
    records = as_json("quarantine", lane.name, "show")
    by_value = {record["value"]: record for record in records}
    assert by_value["\\x1b[31m{red"]["key"] == "\\xff\\x00k", "bytes are written out, never sent to a terminal"
    assert set(by_value) == {"\\x1b[31m{red", '{"kind": "x"}', "long " * 100}
    reason = by_value['{"kind": "x"}']["reason"]
    assert [r["value"] for r in as_json("quarantine", lane.name, "show", "--reason", reason)] == ['{"kind": "x"}']
    assert len(as_json("quarantine", lane.name, "show", "--limit", "1")) == 1
    for day in days:
        assert run("quarantine", lane.name, "list", "--day", day.isoformat()).returncode == 0
    assert as_json("quarantine", lane.name, "list", "--day", "1999-01-01")["days"] == []
    shown = run("quarantine", lane.name, "show").stdout
    assert "\x1b" not in shown
    assert "(500 characters; --json prints all)" in shown


@pytest.mark.rare
def test_sweep_reports_quarantine_that_lost_records(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([b"rubbish", b"more rubbish"])
    assert lane.sweep().quarantine == ()
    ((day, length),) = lane.files().list_quarantine_days().items()
    path = lane.layout.quarantine_file(day)
    content = lane.raw()[f"quarantine/{day}.log"]
    lane.overwrite(path, content[:-10])
    (short,) = lane.sweep().quarantine
    assert (short.day, short.path, short.expected_length, short.file_length) == (day, path, length, length - 10)
    lane.store().remove(path)
    done = run("sweep", lane.name)
    assert (done.returncode, f"quarantine of {day} has 0 of {length} bytes" in done.stdout) == (1, True)
    declare = ("retention", lane.name, "--adopt-missing", "--json")
    assert len(as_json(*declare, "--dry-run")["missing_quarantine"]) == 1
    assert f"onceover retention {lane.name} --adopt-missing" in done.stdout
    assert as_json(*declare, "--reason", "there is no backup")["expired_days"] == 1
    assert lane.sweep().quarantine == ()
