"""Tables of the pages name exactly what the code has: findings, steps, states, metrics, stores, DAGs, keys, codes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from typing import Any

import pytest
from tests.docs.pages import ROOT, read, rows

from onceover.cli.exit_codes import EVERYWHERE
from onceover.config import contract_tables, pipeline_tables
from onceover.config.duration import parse_duration
from onceover.config.endpoints import PARTS
from onceover.fault_points import CompactStep, RepairStep, Step
from onceover.ledger.windows import WindowState
from onceover.model.batch_plan import SHARDING
from onceover.model.finding_kinds import Kind, as_markdown
from onceover.model.gap import Reason
from onceover.model.pipeline import OFFSET_STORES, IngestPolicy
from onceover.observability.metrics import METRICS, UP

REFERENCE = read("docs/pipeline-reference.md")


def column(page: str, heading: str, number: int = 0) -> list[str]:
    return [cells[number] for cells in rows(read(page).section(heading))]


def test_findings_table_has_every_kind_and_every_loss() -> None:
    holes = {f"{Kind.HOLE}, {reason}" for reason in Reason if reason.is_loss}
    named = column("docs/runbook.md", "Findings")
    assert len(set(named)) == len(named)
    assert set(named) == {str(kind) for kind in Kind if kind is not Kind.HOLE} | holes
    assert as_markdown() in read("docs/runbook.md").section("Findings")


def test_crash_table_has_every_step_of_a_batch_in_order() -> None:
    table = read("docs/architecture.md").section("What a crash leaves behind")
    named = [cells[0] for cells in rows(table)]
    assert named[: len(Step)] == [str(step).replace("_", " ") for step in Step]
    assert [step for step in (*RepairStep, *CompactStep) if f"`{step}`" not in table] == []


def test_states_of_a_window_are_all_explained() -> None:
    named = column("docs/concepts.md", "How a window lives")
    assert set(named) == {str(state) for state in WindowState}


def test_metrics_table_is_what_is_exposed() -> None:
    table = rows(read("docs/observability.md").section("Metrics"))
    named = [(name.strip("`"), label.strip("`")) for name, label, _ in table]
    assert named == [(UP, ""), *((each.name, each.label or "") for each in METRICS)]


def test_offset_stores_table_has_every_store() -> None:
    section = read("docs/offsets.md").text.split("## ")[0]
    assert {cells[0].split("`")[1] for cells in rows(section)} == set(OFFSET_STORES)


def test_sharding_table_has_every_rule() -> None:
    assert {name.strip("`") for name in column("docs/pace.md", "How work is spread")} == set(SHARDING)


def test_operations_explain_every_dag() -> None:
    named = {name.strip("`") for name in column("docs/operations.md", "Three ways to repair", 1)}
    assert named == {path.stem for path in (ROOT / "dags").glob("*.py")}


def test_exit_codes_are_all_explained() -> None:
    assert [int(code) for code in column("docs/operations.md", "Exit codes")] == sorted(EVERYWHERE)


def test_benchmarks_table_has_every_benchmark() -> None:
    source = (ROOT / "bench" / "__main__.py").read_text()
    there = re.findall(r'^ {4}"(\w+)": \w+\.run,', source, re.MULTILINE)
    listed = read("docs/benchmarks.md").text.split("## ")[0]
    assert {cells[0].strip("`") for cells in rows(listed)} == set(there)


def test_reference_explains_every_key_of_the_example() -> None:
    example = tomllib.loads((ROOT / "pipelines" / "flights.toml").read_text())
    for table, heading in (("contract", "[contract]"), ("ingest", "[ingest]"), ("storage", "[storage]"),
                           ("repair", "[repair]")):  # fmt: skip
        keys = {name for name, value in example[table].items() if not isinstance(value, dict)}
        assert keys <= _named(heading)
    assert set(example["contract"]["bounds"]) == _named("[contract.bounds]")


def test_reference_explains_every_ingest_key_that_is_read() -> None:
    assert _named("[ingest]") == {each.name.removesuffix("_ms") for each in fields(IngestPolicy)}


@pytest.mark.parametrize(
    ("heading", "table"),
    [
        ("[contract]", contract_tables.ContractTable),
        ("[contract.csv]", contract_tables.CsvTable),
        ("[contract.bounds]", contract_tables.BoundsTable),
        ("[ingest]", pipeline_tables.IngestTable),
        ("[storage]", pipeline_tables.StorageTable),
        ("[repair]", pipeline_tables.RepairTable),
    ],
)
def test_reference_has_every_key_with_its_default(heading: str, table: Any) -> None:
    defaults = {
        field.alias: "required" if field.is_required() else field.default
        for field in table.__pydantic_fields__.values()
        if field.alias not in ("keys", "measures", "bounds", "csv")  # they have sections of their own
    }
    section = re.split(r"^###? ", REFERENCE.section(heading), flags=re.MULTILINE)[0]
    shown = {key.strip("`"): default.strip("`") for key, default, _ in rows(section)}
    assert shown.keys() == defaults.keys()
    example = (ROOT / "pipelines" / "flights.toml").read_text()
    assert [key for key in defaults if f"{key} = " not in example] == []
    for key, default in defaults.items():
        text = shown[key].strip('"')
        accepted = {text, text.strip("'"), parse_duration(text), *({None, ""} if text == "none" else ())}
        accepted |= {int(text)} if text.isdecimal() else {()} if text == "[]" else set()
        accepted |= {text == "true"} if text in ("true", "false") else set()
        accepted |= {None} if key == "schema" else {""} if key == "group" else set()  # by the format; by the name
        assert default in accepted, key


def test_reference_names_variables_that_the_code_reads() -> None:
    named = set(re.findall(r"`(ONCEOVER_[A-Z_]+)`", REFERENCE.section("Addresses and other settings")))
    assert {f"ONCEOVER_{part.upper()}" for part in PARTS} <= named
    code = "\n".join(path.read_text() for top in ("jobs", "plugins", "local") for path in (ROOT / top).rglob("*.py"))
    built = {f"ONCEOVER_{part.upper()}" for part in PARTS}
    assert [name for name in named - built if name not in code] == []


def _named(heading: str) -> set[str]:
    """The keys in the table of that section."""
    section = re.split(r"^###? ", REFERENCE.section(heading), flags=re.MULTILINE)[0]
    return {cells[0].strip("`") for cells in rows(section)}
