"""What the tests of the page look at: a pipeline with failed windows and hostile texts, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect
from tests.chromium import open_chromium
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.page_visits import Visit
from tests.integration.planted_failures import land_twice

from onceover.config.endpoints import address
from onceover.detection.detect import detect
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

expect.set_options(timeout=60_000)  # a busy machine draws a page in seconds
HOSTILE = "<script>alert(1)</script>"
FIRST = "2026-03-01T12:00Z"


@dataclass
class Scene:
    """A pipeline with two failed windows, one after the other, and a third certified one, and a browser."""

    lane: Lane
    stack: Stack
    browser: Browser
    address: str
    airflow: AirflowRest

    def visit(self, user: str = "admin", **look: object) -> Visit:
        return Visit.begin(self.browser, self.stack, self.address, user, **look)

    def wait_for_form(self, dag: str = "repair_on_call") -> None:
        """Wait until Airflow has parsed the DAG again: it refuses a run for a pipeline that its form does not know."""
        self.airflow.wait_for_choice(dag, "pipeline", self.lane.name)


@pytest.fixture
def scene(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> Iterator[Scene]:
    lane = lanes()
    lane.land([event(minute, HOSTILE) for minute in (1, 6, 11)])
    lane.detect()
    land_twice(lane, [event(minute, HOSTILE) for minute in (2, 7)])
    with lane.open() as context, open_chromium() as browser:
        detect(context, who=HOSTILE, why=HOSTILE)
        yield Scene(lane, stack, browser, address("airflow"), airflow)
