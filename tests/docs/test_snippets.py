"""What pages show as TOML loads, and what they show as Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, README

from onceover.config.pipeline_file import read_pipeline

TOML = [pytest.param(block, id=f"{page}-{n}") for page in PAGES for n, block in enumerate(page.fenced("toml"))]
PYTHON = [pytest.param(block, id=f"{page}-{n}") for page in PAGES for n, block in enumerate(page.fenced("python"))]


@pytest.mark.parametrize("block", TOML)
def test_toml_block_is_a_pipeline(block: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.toml"
    file.write_text(block)
    for name in re.findall(r'^schema_file = "(.+)"', block, re.MULTILINE):
        (tmp_path / name).write_text("{}")
    assert read_pipeline(file).name == "shown"


@pytest.mark.parametrize("block", PYTHON)
def test_python_block_runs(block: str) -> None:
    exec(compile(block, "shown", "exec"), {"__name__": "shown"})


def test_python_line_that_needs_a_broker_compiles() -> None:
    (line,) = re.findall(r'python -c "(.+)"', README.text)
    compile(line, "shown", "exec")


def test_there_is_something_to_try() -> None:
    assert len(TOML) >= 2
    assert len(PYTHON) >= 2
