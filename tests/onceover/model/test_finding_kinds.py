from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceover.model.finding_kinds import MEANINGS, Kind, as_markdown, failures
from onceover.model.gap import Reason
from onceover_airflow.tables import with_findings

ROOT = Path(__file__).parents[3]
TABLE = "onceover/model/finding_kinds.py"
# A kind may be named where its finding is made, where its evidence is read, and nowhere else.
RECORDED = {
    "onceover/model/judgement.py": "judges the ledger's numbers",
    "onceover/detection/evidence.py": "judges batches and Kafka partitions",
    "onceover/detection/holes.py": "asks Kafka why offsets are missing",
    "onceover/detection/sweep.py": "compares rows with their certificate",
    "onceover/repair/proof.py": "judges what a scan of raw showed",
    "onceover/ledger/read_again.py": "requests a repair of the windows that a hole landed in",
}
READ = {
    "onceover/model/finding.py": "tells whether ingest skipped offsets",
    "onceover/detection/plan.py": "counts the windows that a repair will refuse",
    "onceover/explain/page/losses.py": "offers each loss that a hole names to be accepted",
    "onceover/explain/gather.py": "looks for a compacted file where text is gone, and for lost lines of open windows",
    "onceover/explain/next_steps.py": "knows what a proof failed for by the repair's codes",
    "onceover/explain/page/trouble.py": "counts duplicates, which no count of the ledger shows",
    "onceover/explain/page/window.py": "says when the same offsets landed a second time",
    "onceover/repair/lost_windows.py": "lists windows whose raw lacks records",
    "onceover/explain/finding_text.py": "puts the numbers of each kind's evidence into words",
    "onceover/observability/metric_values.py": "counts the offsets in the evidence of holes",
    "onceover/ledger/findings.py": "notes no failed proof beside lines that are known to be lost",
    "onceover_demo/story.py": "shows a number of the evidence in a column",
    "onceover_demo/ledger_facts.py": "counts windows with late records",
    "onceover_demo/experiments/__main__.py": "expects what an experiment plants",
}
# The same words for another thing: a column of a landing, and a total of the demo's ledger.
NO_KIND = {
    ("onceover/explain/window_text.py", "late"),
    ("onceover_demo/ledger_facts.py", "late"),
    ("onceover_demo/story.py", "late"),
    ("onceover_demo/__main__.py", "late"),
}
MODULES = {
    str(path.relative_to(folder)): ast.parse(path.read_text())
    for folder in (ROOT / "jobs", ROOT / "demo")
    for path in sorted(folder.rglob("*.py"))
}


def _literals(module: ast.Module) -> Iterator[str]:
    """The kinds that are a string of the module, or that SQL in one quotes."""
    quoted = re.compile("|".join(f"'{kind}'" for kind in Kind))
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ([node.value] if node.value in list(Kind) else [])
            yield from (literal.strip("'") for literal in quoted.findall(node.value))


def _members(module: ast.Module) -> list[str]:
    return [
        node.attr
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Kind"
    ]


def test_kind_is_written_out_in_the_table_only() -> None:
    written = {(name, kind) for name, module in MODULES.items() if name != TABLE for kind in _literals(module)}
    assert written == NO_KIND


def test_kind_is_named_only_where_recorded_or_read() -> None:
    naming = {name for name, module in MODULES.items() if _members(module)}
    assert naming == {TABLE, *RECORDED, *READ}


def test_every_kind_is_recorded_by_some_module() -> None:
    assert {name for path in RECORDED for name in _members(MODULES[path])} == {kind.name for kind in Kind}


def test_table_has_every_kind() -> None:
    assert list(MEANINGS) == list(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_kind_has_words_and_a_remedy(kind: Kind) -> None:
    meaning = kind.meaning
    assert meaning.what.endswith(".")
    assert all(case.cause and (case.repair or not failures([kind])) for case in meaning.cases)
    assert any(step.command for step in meaning.remedy)


def test_cases_of_a_hole_are_the_losses() -> None:
    assert {case.reason for case in Kind.HOLE.meaning.cases} == {str(reason) for reason in Reason if reason.is_loss}


def test_pipeline_finding_names_no_window_in_its_commands() -> None:
    for kind in Kind:
        steps = (*kind.meaning.first, *kind.meaning.remedy)
        named = any("{window}" in (step.command or "") for step in steps)
        assert named == kind.meaning.of_window, kind


def test_late_records_alone_are_no_failure() -> None:
    assert failures([Kind.LATE]) == set()
    assert failures([Kind.LATE, Kind.HOLE, "sunspots"]) == {Kind.HOLE, "sunspots"}


def test_document_of_a_dag_ends_with_the_table() -> None:
    assert with_findings("Every 5 minutes.\n").endswith(f"\n\n{as_markdown()}\n")
