"""The page in Airflow over a year of windows and over three: its queries, the strip in a real browser from the request
to the drawn picture, with the frame of Airflow left out, and how long a landing takes while visitors look at the page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event

import requests
from playwright.sync_api import Page
from tests.chromium import open_chromium
from tests.integration.page_visits import Visit

from bench import large_ledger
from bench.large_ledger import LargeLedger
from bench.late_record import land_late_record
from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address
from onceover.explain.page.strip import read_strip
from onceover.explain.page.trouble import list_trouble
from onceover.ledger import drivers
from onceover.ledger.database import Connection, connect
from onceover_local.stack import Stack

EACH_FAILED = 50  # of so many windows, one is not certified any more
STRIP_GOAL, TROUBLE_GOAL, SCREEN_GOAL = 0.3, 0.15, 1.0
LANDINGS, VISITORS, LOOKS_EVERY = 1000, 3, 2.0
"""Of one run; beside it; the seconds after which a page that follows a run asks again."""
LANDING_GOAL = 1.25
TOML = """
[contract]
topic = "{name}"
window_minutes = {minutes}
schema = "at BIGINT, kind STRING"
required = ["at"]
event_time = "value.at"
[contract.keys]
kind = "value.kind"
[contract.measures]
events = {{ count = "*" }}
[contract.bounds]
horizon = "none"
skew = "none"
"""


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    stack, folder = Stack(Path(os.environ["ONCEOVER_LOCAL"])), Path(os.environ["ONCEOVER_LOCAL"]) / "pipelines"
    folder.mkdir(exist_ok=True)
    os.environ["ONCEOVER_PIPELINES"] = str(folder)
    rows: list[Row] = []
    with connect(address("postgres"), "bench") as connection:
        built = [_build(connection, years, folder) for years in ((1,) if runs() == 1 else (1, 3))]
        stack.up(["airflow"])
        with open_chromium() as browser:
            visit = Visit.begin(browser, stack, address("airflow"))
            for ledger in built:
                rows += _measure(connection, visit.tab, ledger)
            cookies = {each["name"]: each["value"] for each in visit.tab.context.cookies()}
        rows.append(_measure_landings(connection, built[-1], cookies))
    return rows, [f"one window of {EACH_FAILED} is not certified; the browser and all servers share this machine"]


def _build(connection: Connection, years: int, folder: Path) -> LargeLedger:
    name = f"bench_page_{years}"
    ledger = large_ledger.build(connection, name, years * large_ledger.YEAR)
    connection.execute(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s '
        "AND extract(epoch FROM window_start)::bigint / %s %% %s = 0",
        [name, 60 * large_ledger.MINUTES, EACH_FAILED],
    )
    connection.execute('ANALYZE onceover."window"')
    (folder / f"{name}.toml").write_text(TOML.format(name=name, minutes=large_ledger.MINUTES))
    return ledger


def _measure(connection: Connection, tab: Page, ledger: LargeLedger) -> list[Row]:
    name, times = ledger.known.name, max(5, runs())
    start, end = large_ledger.START, large_ledger.START.replace(year=large_ledger.START.year + 1)
    strip = read_strip(connection, name, start, end)
    counted = [_count(connection, name, start, end, certified) for certified in (True, False)]
    correct = [strip["states"].count("C") + strip["states"].count("R"), strip["states"].count("c")] == counted
    drawn: list[float] = []
    for _ in range(times + 1):
        tab.goto(f"{address('airflow')}/onceover/{name}?year={start.year}")
        drawn.append(float(tab.locator("#strip[data-drawn]").get_attribute("data-drawn", timeout=60_000) or 0) / 1000)
    shown = tab.evaluate("async () => (await (await fetch(document.getElementById('strip').dataset.address)).json())")
    correct = correct and shown["states"] == strip["states"]
    size = f"of {ledger.windows:,} windows"
    of_strip = _time(lambda: read_strip(connection, name, start, end), times)
    of_trouble = _time(lambda: list_trouble(connection, name), times)
    return [
        _row(f"SQL of a year's strip {size}", of_strip, STRIP_GOAL, correct, times),
        _row(f"SQL of the trouble {size}", of_trouble, TROUBLE_GOAL, correct, times),
        _row(f"a year drawn, from the request on, {size}", middle(drawn[1:]), SCREEN_GOAL, correct, times),
    ]


def _count(connection: Connection, name: str, start: datetime, end: datetime, certified: bool) -> int:
    row = connection.execute(
        'SELECT count(*) AS n FROM onceover."window" WHERE pipeline = %s AND window_start >= %s AND window_start < %s '
        "AND is_certified = %s",
        [name, start, end, certified],
    ).fetchone()
    return int(row["n"]) if row else -1


def _time(work: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times + 1):
        began = time.monotonic()
        work()
        took.append(time.monotonic() - began)
    return middle(took[1:])


def _row(work: str, seconds: float, goal: float, correct: bool, times: int) -> Row:
    return Row(work, seconds, goal, "the goal", "s", seconds / goal, f"{goal:g} s", seconds <= goal, correct, times)


def _measure_landings(connection: Connection, ledger: LargeLedger, cookies: Mapping[str, str]) -> Row:
    """Land late records while visitors look at the same pipeline, and without visitors."""
    name = ledger.known.name
    epoch, landed = drivers.acquire(connection, name, "bench"), 0
    counted = "SELECT sum(records) AS n FROM onceover.landing WHERE pipeline = %s"
    before = connection.execute(counted, [name]).fetchone()
    looks: list[str] = []

    def land() -> float:
        nonlocal landed
        began = time.monotonic()
        for _ in range(LANDINGS):
            land_late_record(connection, epoch, name, 7_919 * landed % ledger.windows, landed)
            landed += 1
        return (time.monotonic() - began) / LANDINGS * 1000

    def land_beside_visitors() -> float:
        with _visitors(name, cookies, looks):
            return land()

    beside, alone = alternate(land_beside_visitors, land, max(5, runs()))
    after = connection.execute(counted, [name]).fetchone()
    correct = bool(before and after and after["n"] - before["n"] == landed and set(looks) == {"200"})
    for refused in sorted(set(looks) - {"200"}):
        print(f"  {looks.count(refused)} answers were {refused}")
    ours, peer = middle(beside), middle(alone)
    work = f"a landing beside {VISITORS} visitors of {ledger.windows:,} windows ({len(looks)} answers)"
    return Row(work, ours, peer, "a landing without visitors", "ms", ours / peer, f"{LANDING_GOAL:g}",
               ours / peer <= LANDING_GOAL, correct, max(5, runs()))  # fmt: skip


@contextmanager
def _visitors(name: str, cookies: Mapping[str, str], looks: list[str]) -> Iterator[None]:
    """Ask for the pipelines, a year's strip and the trouble, as open pages do, and add what each answered: 200, or
    which address answered what else."""
    year = large_ledger.START.year
    paths = ("pipelines", f"p/{name}/strip?from={year}-01-01T00:00Z&to={year + 1}-01-01T00:00Z", f"p/{name}/trouble")
    stop, here = Event(), address("airflow")

    def look() -> None:
        while True:
            for path in paths:
                answer = requests.get(f"{here}/onceover/api/{path}", cookies=dict(cookies), timeout=60)
                looks.append("200" if answer.ok else f"{path}: {answer.status_code} {answer.text[:200]}")
            if stop.wait(LOOKS_EVERY):
                return

    with ThreadPoolExecutor(VISITORS) as pool:
        looking = [pool.submit(look) for _ in range(VISITORS)]
        try:
            yield
        finally:
            stop.set()
            for each in looking:
                each.result()
