"""The room map names every room in the order that lint keeps, and every file that the page names is there."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT, read, rows

PAGE = read("docs/architecture.md")
LIBRARY = ROOT / "jobs" / "onceover"
FROM = (ROOT, LIBRARY, ROOT / "plugins" / "onceover_airflow")


def _rooms() -> list[str]:
    return [cells[0].strip("`/") for cells in rows(PAGE.section("The rooms")) if cells[0].endswith("/`")]


def test_room_map_has_every_room_of_the_library() -> None:
    there = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert set(_rooms()) - {"operators"} == there


def test_room_map_is_in_the_order_that_lint_keeps() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["onceover"])
    floor = {room.strip(): number for number, layer in enumerate(layers) for room in layer.split("|")}
    floors = [floor[room] for room in _rooms() if room in floor]
    assert len(floors) >= 15
    assert floors == sorted(floors)


def test_room_map_names_every_loose_module() -> None:
    there = {path.name for path in LIBRARY.glob("*.py")} - {"__init__.py"}
    assert [name for name in there if f"`{name}`" not in PAGE.text] == []


def test_modules_of_the_plugin_are_all_in_the_map() -> None:
    there = {path.name for path in (ROOT / "plugins" / "onceover_airflow").glob("*.py")} - {"__init__.py"}
    assert [name for name in there if f"`{name}`" not in PAGE.text] == []


def test_files_that_the_page_names_exist() -> None:
    named = [text for text in PAGE.mentioned if re.fullmatch(r"[\w./-]+(?:\.py|\.yml|\.toml|\.in|\.txt|/)", text)]
    assert len(named) >= 40
    names_no_file = {text for text in named if "NAME" in text or "ROOM" in text or text.startswith(".venv")}
    missing = [text for text in set(named) - names_no_file if not any((top / text).exists() for top in FROM)]
    assert missing == []
