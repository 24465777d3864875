"""What persons do on the page, each by the browser's own call of a DAG: who is on it, and what was refused."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect
from tests.integration.page_scene import FIRST, HOSTILE, Scene
from tests.integration.page_visits import FOLLOWED_MS, Visit, repair_on_page

from onceover.ledger.takings import list_takings, take_windows
from onceover.model.window import WindowRange
from onceover_local.airflow_rest import AirflowRest, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]

ONE = WindowRange.parse(FIRST, "2026-03-01T12:05Z", 5)


def follow(visit: Visit, button: str) -> Locator:
    """Press the button, and return what Airflow says when the run has ended."""
    visit.tab.get_by_role("button", name=button, exact=True).click()
    visit.tab.wait_for_url("**/runs/*/page__*")
    visit.tab.locator("body[data-followed]").wait_for(timeout=FOLLOWED_MS)
    return visit.tab.locator("#airflow")


def test_window_is_taken_over_until_it_is_certified(scene: Scene, airflow: AirflowRest) -> None:
    name = scene.lane.name
    wait_for(lambda: name in airflow.choices("take_windows", "pipeline"), 120, "the form to list the pipeline")
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
    repair_on_page(scene.browser, scene.stack, scene.address, f"{name}/{FIRST}", "numbers look doubled")
    with scene.lane.ledger() as ledger:
        assert list_takings(ledger, name) == []
    expect(visit.open(name)).to_contain_text("take windows for INC-42")


def test_repair_that_fails_ends_in_words(scene: Scene) -> None:
    visit = scene.visit()
    visit.open(f"{scene.lane.name}/{FIRST}")
    visit.tab.get_by_label("Reason").fill("numbers look doubled")
    with scene.lane.ledger() as ledger:  # as a batch that lands there meanwhile
        ledger.execute(
            'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
            [scene.lane.name, ONE.start],
        )
    said = follow(visit, "Repair 1 window")
    expect(said).to_contain_text("The run failed")
    expect(said).to_contain_text("changed since you looked")
    assert visit.violations == []
