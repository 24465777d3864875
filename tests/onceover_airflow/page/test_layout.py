"""Each page in a browser as wide as a phone: no text is cut off at the edge. Drawn without a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest
from playwright.sync_api import Browser
from tests.chromium import open_chromium
from tests.onceover_airflow.page.test_render import PAGES

pytestmark = [pytest.mark.airflow, pytest.mark.rare, pytest.mark.filterwarnings("default")]

CUT = "[...document.querySelectorAll('html, .scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.outerHTML)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as started:
        yield started


@pytest.mark.parametrize("template", PAGES)
def test_nothing_is_cut_off_on_a_phone(template: str, browser: Browser) -> None:
    from onceover_airflow.page.render import render

    page = bytes(render(template, **PAGES[template]).body).decode()
    style = files("onceover_airflow.page").joinpath("static", "page.css").read_text()
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.set_content(re.sub("<script.*?</script>", "", page).replace("</head>", f"<style>{style}</style></head>"))
    assert tab.evaluate(CUT) == []
    tab.close()
