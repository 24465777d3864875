"""The page in a real browser: by keyboard, for a screen reader, at two widths and in both themes, with parts away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import expect
from tests.chromium import open_chromium
from tests.integration.page_scene import FIRST, Scene
from tests.integration.page_visits import Visit, repair_on_page
from tests.integration.planted_failures import lose_ledger

from onceover.config.endpoints import address, pipelines_folder
from onceover_local.airflow_rest import AirflowRest, wait_for
from onceover_local.stack import Stack
from onceover_local.stack.airflow import AirflowProcess
from onceover_local.stack.ports import LOOPBACK, Ports

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]

SHOWN = (1280, "light")
"""The look that `make screenshots` keeps."""
HOUR = "range?from=2026-03-01T12:00Z&to=2026-03-01T13:00Z"


def test_pages_are_accessible_at_both_widths_and_in_both_themes(scene: Scene) -> None:
    name = scene.lane.name
    paths = ["", name, f"{name}?day=2026-03-01", f"{name}/{FIRST}", f"{name}/{HOUR}", f"{name}/{HOUR}&force=1",
             "requests/1", "flights", "nothing"]  # fmt: skip
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            visit = scene.visit(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for path in paths:
                visit.open(path)
                visit.wait_until_idle()
                assert visit.list_faults() == [], f"{path}, {width} pixels, {scheme}"
                assert visit.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} at {width}"
            assert visit.violations == []
            visit.tab.context.close()


def test_strip_needs_no_mouse(scene: Scene) -> None:
    visit = scene.visit()
    visit.open(scene.lane.name)
    strip = visit.tab.get_by_role("application")
    where = visit.tab.locator("#where")
    expect(where).to_contain_text("failed")
    for _ in range(20):
        visit.tab.keyboard.press("Tab")
        if strip.evaluate("canvas => canvas === document.activeElement"):
            break
    visit.tab.keyboard.press("ArrowUp")
    expect(where).to_contain_text("none")
    visit.tab.keyboard.press("n")
    expect(where).to_contain_text(f"{FIRST} ")
    visit.tab.keyboard.press("?")
    expect(visit.tab.get_by_role("dialog")).to_be_visible()
    visit.tab.keyboard.press("Escape")
    visit.tab.keyboard.press("Shift+ArrowDown")
    expect(where).to_contain_text("2 windows selected")
    visit.tab.keyboard.press("r")
    expect(visit.tab.get_by_role("button", name="Repair 2 windows")).to_be_enabled()
    assert visit.violations == []


def test_day_leads_to_a_window_without_scripts(scene: Scene) -> None:
    session = scene.visit().tab.context.storage_state()
    context = scene.browser.new_context(java_script_enabled=False, storage_state=session)
    tab = context.new_page()
    tab.goto(f"{scene.address}/onceover/{scene.lane.name}?day=2026-03-01")
    tab.get_by_role("link", name="12:05 failed").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("2026-03-01T12:05Z")
    assert "The button needs JavaScript. From a shell" in tab.content()


def test_viewer_sees_all_and_starts_nothing(scene: Scene, airflow: AirflowRest) -> None:
    before = len(airflow.runs("repair_on_call"))
    visit = scene.visit("viewer")
    visit.open(f"{scene.lane.name}/{FIRST}")
    button = visit.tab.get_by_role("button", name="Repair 1 window")
    expect(button).to_be_disabled()
    visit.tab.get_by_label("Reason").fill("try")
    button.evaluate("button => { button.disabled = false; button.click(); }")
    expect(visit.tab.get_by_role("alert").first).to_contain_text("Airflow does not let you start this DAG")
    assert len(airflow.runs("repair_on_call")) == before


def test_link_to_a_run_leaves_the_frame(scene: Scene, airflow: AirflowRest, tmp_path: Path) -> None:
    name = scene.lane.name
    scene.wait_for_form()
    run = airflow.trigger("repair_on_call", {"pipeline": name, "from": FIRST, "to": "2026-03-01T12:05Z"})
    airflow.wait_for_run("repair_on_call", run, 120)  # without a reason it fails, and the page says so
    (task,) = (each["task_id"] for each in airflow.tasks("repair_on_call", run) if each["state"] == "failed")
    visit = scene.visit()
    visit.tab.goto(airflow.links("repair_on_call", run, task)["Explain these windows"])
    frame = visit.tab.frame_locator("iframe")
    expect(frame.locator("#airflow")).to_contain_text("a repair needs a reason")
    frame.get_by_role("link", name="in Airflow").click()
    visit.tab.wait_for_url(f"**/dags/repair_on_call/runs/{quote(run, safe='')}*")
    assert visit.tab.frames == [visit.tab.main_frame]
    toml = pipelines_folder() / f"{name}.toml"
    shutil.move(toml, tmp_path)
    try:
        visit.open(f"runs/repair_on_call/{quote(run, safe='')}")
        expect(visit.tab.locator("#airflow")).to_contain_text("a repair needs a reason")
        visit.wait_until_idle()  # the refusal of the pipeline's strip was read, too
    finally:
        shutil.move(tmp_path / toml.name, toml)


def test_ten_thousand_failed_windows_are_one_line_and_one_strip(scene: Scene) -> None:
    columns = ", ".join(row["name"] for row in scene.lane.query(_COLUMNS))
    more = {"pipeline": scene.lane.name, "first": FIRST, "more": 10_000}
    scene.lane.query(_MORE_WINDOWS.replace("COLUMNS", columns), more)
    scene.lane.query("ANALYZE")  # as autovacuum does within a minute of so many new rows
    visit = scene.visit()
    main = visit.open(scene.lane.name)
    visit.tab.locator("#strip[data-drawn]").wait_for()
    expect(main.get_by_role("region", name="Trouble").get_by_role("row")).to_have_count(3)
    expect(main.get_by_role("region", name="Trouble")).to_contain_text("10,000")
    expect(main).to_contain_text("10,002 failed")
    assert visit.violations == []


@pytest.mark.largest
def test_six_screens_are_drawn(scene: Scene, tmp_path: Path) -> None:
    """`make screenshots` keeps one look in docs/, and leaves the other three in the test's own folder."""
    folder = Path(os.environ.get("ONCEOVER_SCREENSHOTS", tmp_path)).absolute()
    name = scene.lane.name
    scene.wait_for_form()
    run = repair_on_page(scene.browser, scene.stack, scene.address, f"{name}/{FIRST}", "numbers look doubled")
    for look in (SHOWN, (1280, "dark"), (390, "light"), (390, "dark")):
        width, scheme = look
        into = folder if look == SHOWN else tmp_path / f"{scheme}-{width}"
        visit = scene.visit(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for screen, path in {
            "pipelines": "",
            "strip": name,
            "day": f"{name}?day=2026-03-01",
            "window": f"{name}/2026-03-01T12:05Z",
            "plan": f"{name}/{HOUR}&force=1",
            "run": f"runs/repair_on_call/{run}",
        }.items():
            visit.open(path)
            visit.wait_until_idle()
            visit.tab.evaluate(_RENAME, [name, "payments"])
            visit.tab.screenshot(path=into / f"{screen}.png", full_page=look != SHOWN)
        visit.tab.context.close()
    assert {file.stem for file in folder.glob("*.png")} >= {"pipelines", "strip", "day", "window", "plan", "run"}


def test_window_without_hdfs_is_shown_by_the_ledger(scene: Scene) -> None:
    visit = scene.visit()
    scene.stack.stop_part("namenode")
    try:
        main = visit.open(f"{scene.lane.name}/{FIRST}")
        expect(main.get_by_role("heading", level=1)).to_contain_text("not judged now, last known as ")
        expect(main).to_contain_text("Not judged now; the ledger's last findings follow")
        expect(main).to_contain_text("duplicated")
    finally:
        scene.stack.start_part("namenode")


def test_empty_ledger_and_no_pipeline_are_said_in_words(stack: Stack, airflow: AirflowRest, tmp_path: Path) -> None:
    toml = pipelines_folder() / "flights.toml"
    lose_ledger()
    with open_chromium() as browser:
        visit = Visit.begin(browser, stack, address("airflow"))
        paragraphs = visit.tab.locator("main").get_by_role("paragraph")
        expect(paragraphs).to_have_text(["flights has never run here. Start it: onceover ingest flights"])
        assert visit.list_faults() == []
        expect(visit.open("flights")).to_contain_text("never run here, so it has no windows")
        shutil.move(toml, tmp_path)
        try:
            expect(visit.open("")).to_contain_text("There is no pipeline yet. Save one as pipelines/NAME.toml")
            assert visit.list_faults() == []
            expect(visit.open("flights")).to_contain_text("there is no pipeline 'flights'")
        finally:
            shutil.move(tmp_path / toml.name, toml)
        assert visit.violations == []


def test_base_path_and_a_ledger_away_are_met(scene: Scene) -> None:
    with other_server(scene.stack, "/deep/airflow", ONCEOVER_POSTGRES=f"postgresql://x@{LOOPBACK}:1/x") as deep:
        tab = scene.browser.new_page()
        tab.goto(f"{deep}/onceover/{scene.lane.name}/{FIRST}?why=a+b")
        visit = Visit(tab, deep)
        visit.log_in(scene.stack, "admin")
        expect(tab.get_by_role("heading", level=1)).to_have_text("A part does not answer")
        expect(tab.get_by_role("alert")).to_contain_text(f"PostgreSQL at {LOOPBACK}:1/x does not answer")
        assert tab.url.startswith(f"{deep}/onceover/")
        assert tab.url.endswith("?why=a+b")
        assert tab.evaluate("getComputedStyle(document.querySelector('header')).borderBottomStyle") == "solid"
        tab.goto(f"{deep}/plugin/onceover")  # where Airflow's navigation leads; it adds the frame's whole path
        tab.wait_for_url(f"{deep}/plugin/onceover/deep/airflow/onceover/")
        tab.reload()
        expect(tab.frame_locator("iframe").get_by_role("alert")).to_contain_text("does not answer")
        answer = tab.request.get(f"{deep}/onceover/api/pipelines")
        assert (answer.status, "does not answer" in answer.json()["detail"]) == (503, True)


@contextmanager
def other_server(stack: Stack, path: str, **more: str) -> Iterator[str]:
    """Start one more api-server on the same database, below that path."""
    process = stack._find_part("airflow-api-server")
    assert isinstance(process, AirflowProcess)
    ports = Ports(stack.local / "other-ports.json")
    ports.settle(("other",))
    port = ports["other"]
    there = f"http://{LOOPBACK}:{port}"
    environment = {
        **os.environ,
        **process.make_environment(),
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": there + path,
        **more,
    }
    with (stack.local / "log" / "other-api-server.log").open("ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "airflow", "api-server"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_for(lambda: _answers(f"{there}{path}/api/v2/monitor/health"), 180, "the other api-server")
            yield there + path
        finally:
            started.terminate()
            started.wait(60)


_COLUMNS = """
SELECT quote_ident(column_name) AS name FROM information_schema.columns
WHERE table_schema = 'onceover' AND table_name = 'window' AND is_generated = 'NEVER'
"""
# Copies of the first window and its findings, a day and more later.
_MORE_WINDOWS = """
WITH w AS (SELECT to_jsonb(w) AS row FROM onceover."window" w
  WHERE w.pipeline = %(pipeline)s AND w.window_start = %(first)s),
starts AS (SELECT %(first)s::timestamptz + interval '1 day' + n * interval '5 minutes' AS start
  FROM generate_series(0, %(more)s - 1) n),
copied AS (INSERT INTO onceover."window" (COLUMNS) SELECT COLUMNS FROM (
  SELECT (jsonb_populate_record(NULL::onceover."window", row || jsonb_build_object('window_start', start,
    'window_end', start + interval '5 minutes', 'certificate_id', NULL))).* FROM w, starts) each)
INSERT INTO onceover.finding (pipeline, window_start, kind, evidence, first_seen_at, last_seen_at)
SELECT f.pipeline, start, f.kind, f.evidence, f.first_seen_at, f.last_seen_at FROM onceover.finding f, starts
WHERE f.pipeline = %(pipeline)s AND f.window_start = %(first)s AND f.resolved_at IS NULL
"""
_RENAME = """([from, to]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(from, to);
}"""


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False
