"""The README is short, in its order, and shows a pipeline that loads and folders that are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import README, ROOT, kept_files

from onceover.config.pipeline_file import read_pipeline

MAX_LINES = 150
ORDER = [
    "Onceover",
    "Two commands",
    "Features",
    "Your own pipeline",
    "A window looks wrong",
    "Guarantees and non-goals",
    "The tree",
    "Documentation",
]


def test_readme_is_short_and_in_order() -> None:
    assert len(README.text.splitlines()) <= MAX_LINES
    assert README.headings == ORDER


def test_readme_opens_with_promise_problem_and_picture() -> None:
    promise, problem, picture = README.text.split("\n\n")[1:4]
    assert len(promise.splitlines()) <= 4
    assert promise.startswith("After repair, each aggregate counts every Kafka record of its window exactly once")
    assert len(problem.splitlines()) <= 8
    assert all(line.startswith("    ") for line in picture.splitlines())


def test_readme_pipeline_loads_as_it_is(tmp_path: Path) -> None:
    (block,) = README.fenced("toml")
    file = tmp_path / "payments.toml"
    file.write_text(block)
    assert [measure.name for measure in read_pipeline(file).contract.measures] == ["payments", "cents"]


def test_readme_tree_names_folders_that_are_there() -> None:
    named = re.findall(r"^ {4,6}([a-z_]+)/ ", README.section("The tree"), re.MULTILINE)
    there = {path.name for path in ROOT.glob("*/")} | {path.name for path in ROOT.glob("*/*/")}
    assert len(named) >= 8
    assert set(named) <= there


def test_readme_tree_names_every_folder_of_the_top() -> None:
    named = set(re.findall(r"^ {4}([a-z_]+)/ ", README.section("The tree"), re.MULTILINE))
    kept = {name.split("/")[0] for name in kept_files() if "/" in name}
    assert {name for name in kept if not name.startswith(".")} == named


def test_readme_names_the_two_commands_and_up_and_down() -> None:
    assert {"demo", "test", "up", "down"} <= set(re.findall(r"make ([a-z]+)", README.text))


def test_readme_links_every_page() -> None:
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"CONTRIBUTING.md", "CHANGELOG.md"} <= {link.split("#")[0] for link in README.links}
