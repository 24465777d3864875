"""What persons do on the page, each by the browser's own call of a DAG: who is on it, and what was refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, expect
from tests.integration.page_scene import FIRST, HOSTILE, Scene
from tests.integration.page_visits import FOLLOWED_MS, Visit, repair_on_page

from onceover.config.endpoints import address
from onceover.ledger.takings import list_takings, take_windows
from onceover.model.windowing import Windowing
from onceover_local.airflow_rest import AirflowRest, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]

ONE = Windowing(5).parse_range(FIRST, "2026-03-01T12:05Z")


def follow(visit: Visit, button: str, *, sure: bool = False) -> Locator:
    """Press the button, and say Yes if `sure`; return what Airflow says when the run has ended."""
    visit.tab.get_by_role("button", name=button, exact=True).click()
    if sure:
        visit.tab.get_by_role("dialog").get_by_role("button", name="Yes", exact=True).click()
    visit.tab.wait_for_url("**/runs/*/page__*")
    visit.tab.locator("body[data-followed]").wait_for(timeout=FOLLOWED_MS)
    return visit.tab.locator("#airflow")


def read_lineage(file: Path, run: str) -> list[dict[str, Any]]:
    """Return the events in the file of tasks of that run that have ended, without a line that is being written."""
    whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
    ended = [event for event in map(json.loads, whole.splitlines()) if event["eventType"] == "COMPLETE"]
    return [event for event in ended if event["run"]["facets"]["airflow"]["dagRun"]["run_id"] == run]


def test_window_is_taken_over_until_it_is_certified(scene: Scene, airflow: AirflowRest, lineage_file: Path) -> None:
    name = scene.lane.name
    scene.wait_for_form("take_windows")
    scene.wait_for_form()
    with scene.lane.ledger() as ledger:
        take_windows(ledger, name, ONE, "kim", HOSTILE)
    visit = scene.visit()
    for reason in ("", "kim's shift has ended"):
        main = visit.open(f"{name}/{FIRST}")
        expect(main).to_contain_text(f"taken by kim for {HOSTILE}")
        visit.tab.get_by_text("Take over, or release").click()
        visit.tab.get_by_label("Ticket").fill("INC-42")
        visit.tab.get_by_label("Why, if another person has them").first.fill(reason)
        said = follow(visit, "Take over")
        if not reason:
            expect(said).to_contain_text(f"taken by kim for {HOSTILE}")
    for path in ("", name, f"{name}/{FIRST}"):
        expect(visit.open(path)).to_contain_text(re.compile("admin(, | for )INC-42"))
    assert visit.violations == []
    run = repair_on_page(scene.browser, scene.stack, scene.address, f"{name}/{FIRST}", "numbers look doubled")
    with scene.lane.ledger() as ledger:
        assert list_takings(ledger, name) == []
    expect(visit.open(name)).to_contain_text("take windows for INC-42")

    wait_for(lambda: read_lineage(lineage_file, run) != [], 60, "the repair's lineage")
    (event,) = read_lineage(lineage_file, run)
    named = [(each["namespace"], each["name"]) for each in (*event["inputs"], *event["outputs"])]
    database = urlsplit(address("postgres"))
    assert named == [
        (address("hdfs"), f"{scene.lane.layout.raw_root}/{name}"),
        (f"kafka://{address('kafka')}", scene.lane.topic),
        (f"postgres://{database.hostname}:{database.port}", f"{database.path.removeprefix('/')}.aggregates.{name}"),
    ]
    assert event["job"]["name"] == "repair_on_call.windows.repair"


def test_rows_before_a_repair_come_back(scene: Scene) -> None:
    scene.wait_for_form("restore_window")
    wrong = scene.lane.aggregates()
    repaired = scene.lane.repair(scene.lane.detect().request_id or 0)
    assert len(repaired.confirmed) == 2
    assert scene.lane.aggregates() != wrong
    visit = scene.visit()
    visit.open(f"{scene.lane.name}/{FIRST}")
    visit.tab.get_by_text("Restore the rows that a repair replaced").click()
    form = visit.tab.locator("form[data-dag=restore_window]")
    form.get_by_label("Reason").fill("the report was sent with those")
    form.get_by_role("button", name="Restore", exact=True).click()
    visit.tab.get_by_role("dialog").get_by_role("button", name="No", exact=True).click()
    said = follow(visit, "Restore", sure=True)
    expect(said).to_contain_text("ended without an error")
    both = scene.lane.aggregates()
    assert [both[key] == wrong[key] for key in sorted(both)] == [True, False, True], "of this window alone"
    expect(visit.open(f"{scene.lane.name}/{FIRST}")).to_contain_text("blocked")
    assert visit.violations == []


def test_repair_that_fails_ends_in_words(scene: Scene) -> None:
    scene.wait_for_form()
    visit = scene.visit()
    visit.open(f"{scene.lane.name}/{FIRST}")
    visit.tab.get_by_label("Reason").fill("numbers look doubled")
    # as a batch that lands there meanwhile
    scene.lane.query(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
        [scene.lane.name, ONE.start],
    )
    said = follow(visit, "Repair 1 window")
    expect(said).to_contain_text("The run failed")
    expect(said).to_contain_text("changed since you looked")
    assert visit.violations == []
