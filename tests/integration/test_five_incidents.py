"""Five incidents, each resolved by a person who has the alert's link and nothing else: clicks, fields and seconds."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, expect
from tests.chromium import open_chromium
from tests.integration import incidents
from tests.integration.extras import repair
from tests.integration.incidents import Incident
from tests.integration.lane import Lanes
from tests.integration.page_visits import FOLLOWED_MS, Visit
from tests.integration.planted_failures import count_certified

from onceover.config.endpoints import address
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.largest]


DAGS = ("repair_on_call", "accept_loss", "reread_window")
REPAIR = r"Repair [\d,]+ windows?"


@dataclass
class Hands:
    """A person at the page, who sees, clicks and types; each click and each field is counted."""

    visit: Visit
    clicks: int = 0
    fields: int = 0

    @property
    def main(self) -> Locator:
        return self.visit.tab.locator("main")

    def click(self, what: Locator) -> None:
        what.click()
        self.clicks += 1

    def open_trouble(self) -> None:
        """Open the first range that the pipeline's page lists as trouble."""
        self.click(self.main.get_by_role("region", name="Trouble").get_by_role("link").first)

    def act(self, button: str, reason: str) -> None:
        """Give the form of that button a reason, press it, say yes if asked, and wait until its run has ended well."""
        press = self.visit.tab.get_by_role("button", name=re.compile(f"^{button}$"))
        form = self.main.locator("form.act", has=press)
        form.get_by_label("Reason").fill(reason)
        self.fields += 1
        self.click(form.locator(press))
        if form.get_attribute("data-confirm"):
            self.click(self.visit.tab.get_by_role("dialog").get_by_role("button", name="Yes"))
        self.visit.tab.wait_for_url("**/runs/*/page__*")
        self.visit.tab.locator("body[data-followed]").wait_for(timeout=FOLLOWED_MS)
        expect(self.visit.tab.locator("#airflow")).to_contain_text("ended without an error")

    def repair(self) -> None:
        """Press the plan's button, and read that each window is certified."""
        self.act(REPAIR, "woken by the alert")
        self.read_certified()

    def read_certified(self) -> None:
        expect(self.visit.tab.locator("#airflow")).to_contain_text(
            re.compile(r"([1-9]\d*) of \1 windows? certified now")
        )

    def go_on(self) -> None:
        """Follow a decision's link to the windows that it is about."""
        self.click(self.main.get_by_role("link", name="as it is now"))


@dataclass
class Night:
    """The person's browser, logged in, on Airflow whose forms know the pipelines."""

    browser: Browser
    stack: Stack
    took: list[str]

    @contextmanager
    def wake(self, incident: Incident) -> Iterator[Hands]:
        """Open the alert's link; note clicks, fields and seconds from then to the end of the block."""
        hands = Hands(Visit.begin(self.browser, self.stack, address("airflow")))
        began = time.monotonic()
        hands.visit.tab.goto(incident.link(address("airflow")))
        yield hands
        seconds = time.monotonic() - began
        self.took.append(f"{incident.what}: {hands.clicks} clicks, {hands.fields} fields typed, {seconds:.0f} s")
        assert hands.visit.violations == []


def require_right(incident: Incident, verdict: str = "exact") -> None:
    """Each window is certified, some of them with that verdict, and readers see the numbers that are right."""
    assert incident.lane.aggregates() == incident.right
    assert count_certified(incident.lane) == len(incident.right)
    stated = incident.lane.query(
        'SELECT DISTINCT c.verdict FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id) '
        "WHERE w.pipeline = %s",
        [incident.lane.name],
    )
    assert verdict in {row["verdict"] for row in stated}


def resolve_doubled_numbers(night: Night, incident: Incident) -> None:
    with night.wake(incident) as hands:
        hands.open_trouble()
        expect(hands.main).to_contain_text("changes the published records by -2")
        hands.repair()


def resolve_dead_ingest(night: Night, incident: Incident) -> None:
    """The page says what has happened and what to type; what it says is then done."""
    with night.wake(incident) as hands:
        expect(hands.main).to_contain_text("Ingest is dead since")
        expect(hands.main).to_contain_text("start it again where it ran; it takes over what was left half done")
        expect(hands.main).to_contain_text(f"onceover ingest {incident.lane.name}")
    incident.lane.ingest()
    repair(incident.lane)


def resolve_expired_hole(night: Night, incident: Incident) -> None:
    with night.wake(incident) as hands:
        hands.act("Accept the loss", "no mirror kept them")
        incident.lane.ingest()  # as the driver does that runs meanwhile
        hands.go_on()
        hands.act(r"Certify \d windows", "the loss is accepted")
        hands.read_certified()
        hands.go_on()
        expect(hands.main).to_contain_text("certified but for an accepted loss")


def resolve_forged_line(night: Night, incident: Incident) -> None:
    with night.wake(incident) as hands:
        hands.open_trouble()
        expect(hands.main).to_contain_text("1 ID with two contents under one leader epoch")
        expect(hands.main).to_contain_text("put it back without the wrong lines, and repair the window")
        incidents.take_out(incident.lane)
        hands.repair()


def resolve_blocked_window(night: Night, incident: Incident) -> None:
    with night.wake(incident) as hands:
        hands.open_trouble()
        expect(hands.main).to_contain_text("bring the window file back first, if you can")
        hands.act("Read again and repair", "no backup has the file")
        expect(hands.main.get_by_role("heading", name="certified")).to_be_visible()


def test_five_incidents_are_resolved_with_the_page(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> None:
    planted = [
        (incidents.double_numbers(lanes()), resolve_doubled_numbers, "exact"),
        (incidents.kill_ingest(lanes()), resolve_dead_ingest, "exact"),
        (incidents.expire_unread(lanes()), resolve_expired_hole, "exact but for accepted losses"),
        (incidents.forge_line(lanes()), resolve_forged_line, "exact"),
        (incidents.block_window(lanes()), resolve_blocked_window, "exact"),
    ]
    names = {incident.lane.name for incident, _, _ in planted}
    for dag in DAGS:  # Airflow refuses what its form does not know yet
        for name in names:
            airflow.wait_for_choice(dag, "pipeline", name)
    with open_chromium() as browser:
        night = Night(browser, stack, [])
        for incident, resolve, verdict in planted:
            resolve(night, incident)
            require_right(incident, verdict)
    print("", *night.took, sep="\n")  # noqa: T201 - what the test is for
