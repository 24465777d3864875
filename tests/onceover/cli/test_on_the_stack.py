"""The commands against a real ledger and real window files, in states that a test planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.frozen import frozen
from tests.onceover.cli.conftest import TOML

from onceover.cli.arguments import get_user
from onceover.ledger.database import SCHEMA_VERSION
from onceover.model.window import format_moment
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
ONCEOVER = str(Path(sys.executable).with_name("onceover"))
DAY_ONE = datetime(2013, 1, 1, tzinfo=UTC)
DAY = ("--from", "2013-01-01T00:00Z", "--to", "2013-01-02T00:00Z")


@pytest.fixture
def states(plant: Any) -> Any:
    """Hour 1 is right, 2 has stray bytes, 3 is blocked, 4 was landed twice, 9 is open."""
    plant.batch(0, {1: 100, 2: 40, 3: 50})
    plant.batch(190, {4: 30})
    plant.batch(190, {4: 30})
    plant.append(2, b"\nstray\n")
    plant.block(3, "landing 3: raw holds 49 of 50")
    plant.batch(220, {9: 10})
    plant.close_before(8)
    return plant


def test_windows_are_listed_with_their_states(run: Any, states: Any) -> None:
    rows = json.loads(run("windows", states.name, "--json").stdout)
    assert [(row["window_start"], row["state"], row["records"]) for row in rows] == [
        ("2013-01-01T01:00Z", "closed", 100),
        ("2013-01-01T02:00Z", "closed", 40),
        ("2013-01-01T03:00Z", "blocked", 50),
        ("2013-01-01T04:00Z", "closed", 60),
        ("2013-01-01T09:00Z", "open", 10),
    ]
    text = run("windows", states.name, "--state", "blocked").stdout
    assert "raw holds 49 of 50" in text
    assert text.endswith("1 window: 1 blocked\n")
    some = json.loads(run("windows", states.name, "--to", "2013-01-01T02:00Z", "--json").stdout)
    assert len(some) == 1
    assert run("windows", states.name, "--state", "repairing").stdout == "no window matches\n"
    assert json.loads(run("windows", states.name, "--state", "repairing", "--json").stdout) == []


def test_windows_ahead_of_the_clock_are_listed_if_in_the_ledger(run: Any, plant: Any) -> None:
    hours = int((datetime.now(UTC) - DAY_ONE) / timedelta(hours=1)) + 30
    ahead, end = (format_moment(DAY_ONE + timedelta(hours=hours + n)) for n in (0, 1))
    for command in (["explain", plant.name, ahead], ["windows", plant.name, "--from", ahead]):
        refused = run(*command)
        assert (refused.exit_code, "in the future" in refused.stderr) == (2, True)
    plant.batch(0, {hours: 10})
    plant.close_before(hours + 1)
    assert "closed" in run("explain", plant.name, ahead).stdout
    assert "1 window" in run("windows", plant.name, "--from", ahead).stdout
    repaired = run("repair", plant.name, "--from", ahead, "--to", end, "--reason", "a clock ran ahead")
    assert (repaired.exit_code, "1 certified from the ledger" in repaired.stdout) == (0, True)
    assert run("explain", plant.name, end).exit_code == 2


def test_window_landed_twice_is_explained_by_its_landings(
    run: Any, states: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("explain", states.name, "2013-01-01T04:00Z")
    assert result.exit_code == 0
    assert "It has closed, and is wrong" in result.stdout
    assert "share 5f3a0b1c-0:190-220." in result.stdout
    assert "[2972, 5944)" in result.stdout
    assert f"onceover repair {states.name} --from 2013-01-01T04:00Z --to 2013-01-01T05:00Z --dry-run" in result.stdout
    output = json.loads(run("explain", states.name, "2013-01-01T04:00Z", "--json").stdout)
    assert [finding["kind"] for finding in output["findings"]] == ["duplicated"]
    assert output["file"]["length"] == 5944
    monkeypatch.setenv("ONCEOVER_WEBHDFS", "http://127.0.0.1:9")
    from_ledger = run("explain", states.name, "2013-01-01T04:00Z")
    assert from_ledger.exit_code == 0
    first = " ".join(from_ledger.stdout.split())
    assert first.startswith(
        f"{states.name}, window 2013-01-01T04:00Z to 2013-01-01T05:00Z: not judged now, last known as closed"
    )
    assert "By the ledger alone, it has closed and is not certified yet." in first
    assert "Not judged now; the ledger's last findings follow" in from_ledger.stdout
    assert "5f3a0b1c-0:190-220" in from_ledger.stdout


def test_explain_distinguishes_right_blocked_and_open_windows(run: Any, states: Any) -> None:
    assert "the next detection certifies it" in run("explain", states.name, "2013-01-01T01:00Z").stdout
    assert "Blocked because: landing 3: raw holds 49 of 50" in run("explain", states.name, "2013-01-01T03:00Z").stdout
    assert "It is open" in run("explain", states.name, "2013-01-01T09:00Z").stdout
    unknown = run("explain", states.name, "2013-01-01T10:00Z")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    (line,) = unknown.stderr.splitlines()
    assert f"window 2013-01-01T10:00Z of {states.name} is unknown" in line


def test_pipeline_that_never_ran_is_explained_how_to_start(run: Any, plant: Any, tmp_path: Path) -> None:
    name = f"{plant.name}_new"
    (tmp_path / "pipelines" / f"{name}.toml").write_text(TOML.format(name=name))
    result = run("windows", name)
    assert result.exit_code == 2
    assert f"onceover ingest {name}" in result.stderr


def test_dry_run_lists_the_repairs_and_writes_nothing(run: Any, states: Any) -> None:
    def everything() -> list[Any]:
        return [
            states.connection.execute(f"SELECT count(*), max(xmin::text::bigint) FROM onceover.{table}").fetchone()
            for table in ('"window"', "finding", "repair_request", "repair", "certificate")
        ]

    before = everything()
    plan = json.loads(run("repair", states.name, *DAY, "--dry-run", "--json").stdout)
    rows = {row["window"]: row["change"] for row in plan["windows"]}
    assert rows == {"2013-01-01T02:00Z": 0, "2013-01-01T04:00Z": -30}
    assert (plan["totals"]["change"], plan["changing"]) == (-30, 0)
    assert "Nothing was written." in run("repair", states.name, *DAY, "--dry-run").stdout
    assert everything() == before


def test_repair_of_a_changed_plan_is_refused_by_name(run: Any, states: Any) -> None:
    """Both that the windows are others by now, and that one of them has changed."""
    plan = json.loads(run("repair", states.name, *DAY, "--dry-run", "--json").stdout)
    states.connection.execute(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
        [states.name, "2013-01-01T04:00Z"],
    )

    refused = run("repair", states.name, *DAY, "--reason", "INC-1", "--plan", plan["token"])

    assert (refused.exit_code, "changed since you looked" in refused.stderr) == (1, True)
    assert "2013-01-01T04:00Z" in refused.stderr
    count = "SELECT count(*) AS n FROM onceover.repair_request WHERE pipeline = %s AND why = 'INC-1'"
    assert states.connection.execute(count, [states.name]).fetchone() == {"n": 0}


def test_repair_of_right_windows_certifies_them_without_spark(run: Any, states: Any) -> None:
    hour = ("--from", "2013-01-01T01:00Z", "--to", "2013-01-01T02:00Z")
    result = run("repair", states.name, *hour, "--reason", "INC-1  [red]night[/]")
    assert result.exit_code == 0
    assert result.stdout == "nothing to repair: 1 window judged, 1 certified from the ledger\n"
    text = run("explain", states.name, "2013-01-01T01:00Z").stdout
    assert "from ledger" in text
    assert '("INC-1 [red]night[/]"): valid.' in text
    assert "Nothing: its certificate is valid." in text
    assert run("repair", states.name, *hour, "--reason", "again").stdout.startswith("nothing to judge")


def test_recorded_findings_are_shown_with_their_history(run: Any, states: Any) -> None:
    states.connection.execute(
        "INSERT INTO onceover.finding (pipeline, window_start, kind, evidence, resolved_at, resolution) "
        "VALUES (%s, '2013-01-01T01:00Z', 'late', '{\"records\": 2, \"landings\": []}', now(), 'certified again')",
        [states.name],
    )
    text = run("explain", states.name, "2013-01-01T01:00Z").stdout
    assert "What was wrong" in text
    assert "certified again." in text


def test_repair_is_shown_with_who_why_before_and_after(run: Any, states: Any) -> None:
    states.connection.execute(
        """
        WITH q AS (INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%(p)s, 'alice', 'INC-2')
          RETURNING request_id)
        INSERT INTO onceover.repair (request_id, pipeline, window_start, state, findings, started_at, finished_at,
          lines_read, bytes_read, duplicates, before, after)
        SELECT request_id, %(p)s, '2013-01-01T04:00Z', 'confirmed', '[]', now(), now(), 60, 5944, 30,
          '{"control": {"records": 60}, "revision": 0}', '{"control": {"records": 30}, "revision": 1}' FROM q
        """,
        {"p": states.name},
    )
    text = run("explain", states.name, "2013-01-01T04:00Z").stdout
    assert 'requested by alice ("INC-2"): confirmed' in text
    assert "read 60 lines, 30 duplicates among them" in text
    assert "Before: 60 records counted (revision 0); after: 30 records (revision 1)." in text


def test_doctor_names_what_is_wrong_with_a_pipeline(run: Any, states: Any, stack: Stack) -> None:
    states.batch(230, {5: 5}, lands=False)
    states.die()
    new = Path(os.environ["ONCEOVER_HOME"]) / "pipelines" / "not_run_yet.toml"
    new.write_text(new.with_name(f"{states.name}.toml").read_text().replace(states.name, "not_run_yet"))
    found = json.loads(run("doctor", "--json").stdout)
    assert {each["check"]: each["state"] for each in found}["topic of not_run_yet"] == "note"
    output = {each["check"]: each for each in found if each["state"] != "wrong"}
    assert {"Java", "Kafka", "HDFS", "PostgreSQL", "ledger"} <= output.keys()
    wrong = " ".join(each["what"] for each in found if each["state"] == "wrong")
    assert "window 2013-01-01T03:00Z" in wrong
    assert f"cannot describe topic '{states.name}'" in wrong
    assert any(each["check"] == "Airflow" and each["state"] == "wrong" for each in found)


@pytest.mark.rare
@pytest.mark.faults
def test_doctor_ends_in_time_though_a_server_is_frozen(run: Any, plant: Any, stack: Stack) -> None:
    with frozen(stack.find_pid("namenode")):
        found = json.loads(run("doctor", "--json").stdout)
    assert any(each["check"] == "HDFS" and each["state"] == "wrong" for each in found)
    assert any(each["check"] == "PostgreSQL" and each["state"] == "fine" for each in found)


@pytest.mark.rare
def test_stack_status_is_1_while_a_process_is_down(run: Any, stack: Stack, plant: Any) -> None:
    result = run("stack", "status", "--json")
    states = {each["name"]: each["state"] for each in json.loads(result.stdout)}
    assert states["postgres"] == states["kafka"] == states["namenode"] == "up"
    assert result.exit_code == (0 if set(states.values()) == {"up"} else 1)


def test_ledger_migration_is_idempotent(run: Any, plant: Any) -> None:
    assert (
        run("ledger", "migrate").stdout
        == run("ledger", "migrate").stdout
        == f"the ledger is at version {SCHEMA_VERSION}\n"
    )


@pytest.mark.rare
def test_repair_that_raw_contradicts_fails_and_publishes_nothing(states: Any) -> None:
    # Planted windows have no lines: raw holds none of the records that were landed.
    hour = ("--from", "2013-01-01T04:00Z", "--to", "2013-01-01T05:00Z")
    command = [ONCEOVER, "repair", states.name, *hour, "--reason", "INC-3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    output = json.loads(done.stdout)
    (window,) = output["windows"]
    assert (window["window"], window["outcome"]) == ("2013-01-01T04:00Z", "failed")
    assert "raw holds 0 of 30" in window["why"]
    assert "request" in done.stderr  # the application's progress
    row = states.connection.execute(
        "SELECT q.who, q.why, r.state FROM onceover.repair r JOIN onceover.repair_request q USING (request_id) "
        "WHERE r.pipeline = %s",
        [states.name],
    ).fetchone()
    assert row == {"who": get_user(), "why": "INC-3", "state": "failed"}
