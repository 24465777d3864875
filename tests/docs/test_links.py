"""Every link leads somewhere: from page to page, to an anchor, and from code and configuration to a page."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import PAGES, ROOT, Page, anchor, kept_files

ANCHORS = {page.path: page.anchors for page in PAGES}
_REFERENCE = re.compile(r"(?<![\w/.])(docs/[a-z-]+\.md|README\.md)(?:#([\w-]+))?")
_BY_NAME = re.compile(r"README'?s? \"|in the README|README has")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_page_links_lead_somewhere(page: Page) -> None:
    folder = (ROOT / page.path).parent
    for target in page.links:
        name, _, section = target.partition("#")
        file = (folder / name).resolve() if name else ROOT / page.path
        assert file.exists(), target
        if section:
            assert section in ANCHORS[str(file.relative_to(ROOT))], target


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_page_headings_have_anchors_of_their_own(page: Page) -> None:
    anchors = [anchor(heading) for heading in page.headings]
    assert len(set(anchors)) == len(anchors)


def test_other_files_refer_to_pages_and_sections_that_exist() -> None:
    found = []
    for name in kept_files():
        if name.endswith((".md", ".png")) or name.startswith("tests/docs/"):
            continue
        text = (ROOT / name).read_text(errors="replace")
        assert not _BY_NAME.search(text), f"{name} names a section of the README; name the page in docs/"
        for page, section in _REFERENCE.findall(text):
            found.append(page)
            assert page in ANCHORS, f"{name}: {page}"
            assert not section or section in ANCHORS[page], f"{name}: {page}#{section}"
    assert "docs/runbook.md" in found
