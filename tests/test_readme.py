"""What the README shows is true: its commands exist, its TOML loads, its tree is there, its words are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from onceover.cli.app import app
from onceover.config.pipeline_file import read
from onceover.fault_points import Step
from onceover.model.finding import Kind
from onceover.observability.metrics import METRICS, UP

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_every_make_target_it_names_exists() -> None:
    found = re.findall(r"`make ([a-z]+)`|^ {4}make ([a-z]+)", README, re.MULTILINE)
    named = {one or other for one, other in found}
    there = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "up", "down"} <= named <= there


def test_its_toml_is_a_pipeline_as_it_stands(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "payments.toml"
    file.write_text(block)
    assert [m.name for m in read(file).contract.measures] == ["payments", "cents"]


def test_every_folder_of_its_tree_is_there() -> None:
    tree = README.split("## The tree")[1].split("##")[0]
    named = re.findall(r"^ {4,6}([a-z_]+)/ ", tree, re.MULTILINE)
    everywhere = {path.name for path in ROOT.glob("*/")} | {p.name for p in ROOT.glob("*/*/")}
    assert len(named) >= 8
    assert set(named) <= everywhere


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^ +onceover ([a-z-]+(?: check)?)", README, re.MULTILINE))))
def test_every_command_it_shows_has_a_help(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0, done.output


def test_every_option_of_its_repair_commands_exists() -> None:
    helped = CliRunner().invoke(app, ["repair", "--help"]).output
    used = {
        o for line in README.splitlines() if "onceover repair flights" in line for o in re.findall(r"--[a-z-]+", line)
    }
    assert used
    assert all(option in helped for option in used)


def test_it_explains_every_finding_and_every_step() -> None:
    findings = README.split("| finding |")[1]
    assert all(str(kind) in findings for kind in Kind)
    crashes = README.split("## What a crash leaves behind")[1]
    assert all(str(step).replace("_", " ") in crashes for step in Step)


def test_its_table_of_metrics_is_what_is_exposed() -> None:
    table = README.split("## Signals")[1].split("| metric |")[1].split("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`)? *\|", table, re.MULTILINE)
    assert named == [(UP, ""), *((each.name, each.label or "") for each in METRICS)]
