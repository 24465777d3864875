"""Names: of tests, short enough for a report and each once in its file; of classes, each once in the source."""

import ast
from pathlib import Path

import pytest
from tests.sources import SOURCES

TESTS = Path(__file__).parent
MOST = 60


def names_in(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if function.name.startswith("test_")]


@pytest.mark.parametrize("file", sorted(TESTS.rglob("test_*.py")), ids=lambda file: str(file.relative_to(TESTS)))
def test_names_are_short_and_unique_in_their_file(file: Path) -> None:
    names = names_in(file)
    assert names
    assert [name for name in names if len(name) > MOST] == []
    assert len(set(names)) == len(names)


def test_classes_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = {}
    for file in sorted(file for folder in SOURCES for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{file.relative_to(TESTS.parent)}:{node.lineno}")
    assert places
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
