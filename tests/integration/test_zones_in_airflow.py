"""A pipeline whose windows have a zone, on the page and in the real Airflow: days and clocks are the zone's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from tests.chromium import open_chromium
from tests.integration.lane import Lanes
from tests.integration.page_visits import Visit
from tests.integration.planted_failures import replay
from tests.integration.program import succeed
from tests.integration.test_airflow import run_dag
from tests.integration.test_zones import DAYS, compute, produce

from onceover.config.endpoints import address
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
SATURDAY = datetime(2026, 10, 24, tzinfo=UTC)
AUTUMN = "2026-10-24T22:00Z (2026-10-25T00:00+02:00 Europe/Berlin)"


def test_page_and_dags_go_by_the_zones_clock(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> None:
    lane = lanes(DAYS, partitions=2, window="6h")
    produce(lane, range(60))
    replay(lane)
    lane.ingest()
    found = lane.detect()
    assert len(found.failed) == 3
    with open_chromium() as browser:
        visit = Visit.begin(browser, stack, address("airflow"), timezone_id="America/Los_Angeles")
        visit.open(f"{lane.name}?year=2026")
        where = visit.tab.locator("#where")
        expect(where).to_contain_text("10/24/2026, 6:00:00 PM Europe/Berlin, 10/24/2026, 9:00:00 AM here")
        visit.tab.get_by_role("application").focus()
        visit.tab.keyboard.press("ArrowRight")
        expect(where).to_contain_text("2026-10-25T17:00Z (10/25/2026, 6:00:00 PM Europe/Berlin")
        visit.tab.keyboard.press("Enter")
        visit.tab.get_by_role("heading", name="2026-10-25, Europe/Berlin").wait_for()
        shown = visit.tab.locator("table.day th[scope=row]").all_inner_texts()
        assert shown == ["00:00", "06:00", "12:00", "18:00"]
        visit.tab.get_by_role("link", name="00:00 failed").click()
        visit.tab.get_by_role("heading", name=f"{lane.name}, {AUTUMN} to 2026-10-25T05:00Z").wait_for()
        assert visit.violations == []

    succeed("requests", lane.name, "--cancel", str(found.request_id), "--reason", "a person repairs a day of it")
    day = {"from": "2026-10-25T00:00+02:00", "to": "2026-10-26T00:00+01:00"}
    run = run_dag(airflow, "repair_on_call", {"pipeline": lane.name, **day, "reason": "doubled"})
    assert AUTUMN in airflow.log("repair_on_call", run, "windows.detect")
    run_dag(airflow, "announce_published", {})
    events = airflow._call("GET", "/api/v2/assets/events", query={"order_by": "-timestamp"})["asset_events"]
    assert [each["partition_key"] for each in events if each["name"] == f"aggregates.{lane.name}"] == ["2026-10-25"]
    # Airflow's days are of UTC: in 24 October end the windows up to midnight in Berlin.
    backfill = airflow.backfill("repair_history", SATURDAY, SATURDAY, {"pipeline": lane.name})
    airflow.wait_for_backfill(backfill, 400)
    assert lane.aggregates() == compute(lane, 6)
