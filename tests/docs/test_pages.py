"""Each page says first which question it answers and fits its lines."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import DOCS, PAGES, Page, read

WIDTH = 120
NAMES = (
    *("architecture", "backup", "benchmarks", "concepts", "decisions", "deployment", "development", "formats"),
    *(
        "maintenance",
        "observability",
        "offsets",
        "operations",
        "pace",
        "page",
        "pipeline-reference",
        "raw-format",
        "raw-stores",
    ),
    *("runbook", "security", "sinks", "values"),
)


def test_there_is_a_page_a_question() -> None:
    assert [page.path for page in DOCS] == [f"docs/{name}.md" for name in NAMES]


@pytest.mark.parametrize("page", [*DOCS, read("CONTRIBUTING.md")], ids=str)
def test_page_opens_with_the_question_it_answers(page: Page) -> None:
    title, question = page.text.split("\n\n")[:2]
    assert re.fullmatch(r"# \S.*", title)
    assert re.fullmatch(r"This page answers: .+\?", question, re.DOTALL)
    assert question.count("?") == 1


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_page_lines_fit_outside_tables_and_code(page: Page) -> None:
    lines = [line for line in page.text.splitlines() if not line.startswith(("|", "    "))]
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_page_names_no_registry_and_no_path_of_a_machine(page: Page) -> None:
    assert re.findall(r"pypi|files\.pythonhosted|repo1?\.maven|docker\.io|/work/|/root/|/home/\w", page.text) == []
