"""A browser on the page: logs in as a person does, acts, and notes whatever the page must never do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, TimeoutError
from tests.airflow_users import read_password
from tests.npm_packages import AXE, unpack

from onceover_local.stack import Stack

FOLLOWED_MS = 300_000


@dataclass
class Visit:
    """A person's tab. `violations` has what broke the Content-Security-Policy or raised an error in a script."""

    tab: Page
    address: str
    violations: list[str] = field(default_factory=list)
    pending: list[Request] = field(default_factory=list)

    @classmethod
    def begin(cls, browser: Browser, stack: Stack, address: str, user: str = "admin", **look: Any) -> Visit:
        """Open the list of pipelines, at its own address, after Airflow's login."""
        look = {"viewport": {"width": 1280, "height": 900}, **look}
        visit = cls(browser.new_context(**look).new_page(), address)
        visit.tab.set_default_timeout(60_000)  # a busy machine draws a page in seconds
        visit.tab.on("console", visit.note)
        visit.tab.on("pageerror", lambda error: visit.violations.append(str(error)))
        visit.tab.on("request", lambda request: visit.pending.append(request))
        visit.tab.on("requestfinished", lambda request: visit.pending.remove(request))
        visit.tab.on("requestfailed", lambda request: visit.pending.remove(request))
        visit.tab.goto(f"{address}/onceover/")
        visit.log_in(stack, user)
        visit.tab.get_by_role("heading", name="Pipelines").wait_for()
        return visit

    def note(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.violations.append(message.text)

    def log_in(self, stack: Stack, user: str) -> None:
        password = read_password(stack, user)
        self.tab.locator("input[name=username]").fill(user)
        self.tab.locator("input[name=password]").fill(password)
        self.tab.keyboard.press("Enter")

    def open(self, path: str) -> Locator:
        """Open a page of Onceover's at its own address; return its content."""
        self.tab.goto(f"{self.address}/onceover/{path}")
        return self.tab.locator("main")

    def wait_until_idle(self) -> None:
        """Wait until nothing is loaded any more. Raises AssertionError that names what still is."""
        try:
            self.tab.wait_for_load_state("networkidle")
        except TimeoutError as error:
            loading = [f"{request.method} {request.url}" for request in self.pending]
            raise AssertionError(f"{self.tab.url} still loads {loading}") from error

    def list_faults(self) -> list[str]:
        """Return what axe finds wrong on the page now, a line each."""
        self.tab.evaluate((unpack(AXE, "install npm") / "axe.min.js").read_text())
        found = self.tab.evaluate("async () => (await axe.run()).violations")
        return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def repair_on_page(browser: Browser, stack: Stack, address: str, path: str, reason: str) -> str:
    """Follow an alert's link through Airflow's frame and its login, press the one button, and wait until the page says
    that every window is certified. Returns the run's ID."""
    visit = Visit(browser.new_context().new_page(), address)
    visit.tab.set_default_timeout(FOLLOWED_MS)  # a busy machine serves Airflow's own scripts slowly
    visit.tab.on("console", visit.note)
    visit.tab.goto(f"{address}/plugin/onceover/onceover/{path}{'&' if '?' in path else '?'}why={quote(reason)}")
    visit.log_in(stack, "admin")
    frame = visit.tab.frame_locator("iframe")
    assert frame.get_by_label("Reason").input_value() == reason
    frame.get_by_role("button", name=re.compile("^Repair")).click()
    visit.tab.wait_for_url("**/runs/repair_on_call/page__*")  # the frame's address is Airflow's own, to be reloaded
    run = unquote(visit.tab.url.rpartition("/")[2])
    visit.tab.reload()
    frame.get_by_role("heading", name=re.compile("certified")).filter(has_not_text="so far").wait_for(
        timeout=FOLLOWED_MS
    )
    frame.locator("body[data-followed]").wait_for(timeout=FOLLOWED_MS)
    assert visit.violations == []
    return run
