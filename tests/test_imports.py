"""Imports are at the top of a module: only commands and operators import a room when they are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.sources import ROOT, SOURCES

OPERATORS = "plugins/onceover_airflow/operators/"
CALLED_BY_AIRFLOW = {"execute", "get_openlineage_facets_on_complete"}
ALLOWED = {
    ("jobs/onceover/cli/__init__.py", "main"): "Ctrl-C while the program is loading ends it without a traceback",
    ("jobs/onceover/context.py", "files"): "a command that reads no files need not load the client of HDFS",
    ("jobs/onceover/context.py", "markers"): "the same",
    ("jobs/onceover/context.py", "build_source"): "a command that reads no records need not load Arrow",
    ("jobs/onceover/context.py", "schemas"): "the same",
    ("jobs/onceover/config/registry.py", "find_schema"): "only a new schema needs the registry's client",
    ("jobs/onceover/config/registry.py", "_open"): "the same",
    ("jobs/onceover/lines/hashes.py", "_hash_column"): "Polars takes longer to load than a small window to hash",
    ("local/onceover_local/stack/jars.py", "_make_context"): "jgo takes long to load, and only a start needs it",
    ("local/onceover_local/stack/jars.py", "_make_lock"): "the same; only who writes the lock needs it",
    ("plugins/onceover_plugin.py", "fastapi_apps"): "only Airflow's api-server serves the page and needs FastAPI",
    ("plugins/onceover_airflow/assets.py", "announce_soon"): "a DAG loads no psycopg; `execute` calls it",
    ("plugins/onceover_airflow/spark.py", "_without_secret"): "called by `execute`, and needs psycopg's parser",
    ("plugins/onceover_airflow/pipeline_operator.py", "open"): "a DAG loads no psycopg; `execute` calls it",
}


def imported_in_functions(source: str) -> Iterator[str]:
    """Yield the innermost function around each import that is inside a function."""

    def walk(node: ast.AST, function: str | None) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom) and function is not None:
                yield function
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from walk(child, child.name if inner else function)  # type: ignore[attr-defined]

    yield from walk(ast.parse(source), None)


def found() -> set[tuple[str, str]]:
    files = [file for folder in SOURCES for file in folder.rglob("*.py")]
    return {
        (path, function)
        for file in files
        for path in [str(file.relative_to(ROOT))]
        for function in imported_in_functions(file.read_text())
        if not (path.startswith(OPERATORS) and function in CALLED_BY_AIRFLOW)
    }


def test_import_in_a_function_is_behind_a_door_or_explained() -> None:
    assert sorted(found() - ALLOWED.keys()) == []


def test_explained_imports_are_all_there() -> None:
    assert sorted(ALLOWED.keys() - found()) == []


def test_import_in_a_nested_function_is_seen() -> None:
    assert list(imported_in_functions("def a():\n    def b():\n        import c\n")) == ["b"]
    assert list(imported_in_functions("import a\nif True:\n    from b import c\n")) == []
