from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_right_toml_is_fine(run: Any, home: Path) -> None:
    result = run("pipelines", "check", "--no-spark")
    assert result.exit_code == 0
    assert "things" in result.stdout
    assert "SQL not checked" in result.stdout


def test_pipelines_names_every_mistake_and_shows_the_right_files(run: Any, home: Path) -> None:
    right = (home / "pipelines" / "things.toml").read_text()
    wrong = right.replace("window_minutes = 60", "window_minutes = 7").replace('format = "json"', 'format = "xml"')
    (home / "pipelines" / "other.toml").write_text(wrong)
    result = run("pipelines", "check", "--no-spark", "--json")
    assert result.exit_code == 78
    output = json.loads(result.stdout)
    assert {(m["file"], m["key"]) for m in output["mistakes"]} >= {
        ("pipelines/other.toml", "contract.window_minutes"),
        ("pipelines/other.toml", "contract.format"),
    }
    assert all(m["what"] and m["remedy"] for m in output["mistakes"])
    assert [p["name"] for p in output["pipelines"]] == ["things"]


def test_mistakes_are_printed_one_a_line(run: Any, home: Path) -> None:
    right = (home / "pipelines" / "things.toml").read_text()
    (home / "pipelines" / "things.toml").write_text(right.replace("window_minutes = 60", "window_minutes = 7"))
    result = run("pipelines", "check", "things", "--no-spark")
    assert result.exit_code == 78
    assert any(
        line.startswith("pipelines/things.toml: contract.window_minutes: ") for line in result.stdout.splitlines()
    )
    assert "Traceback" not in result.output


def test_home_without_pipelines_explains_how_to_add_one(run: Any, home: Path) -> None:
    (home / "pipelines" / "things.toml").unlink()
    for command in ("list", "check"):
        result = run("pipelines", command)
        assert result.exit_code == 0
        assert "write a TOML into pipelines/" in result.stdout


def test_list_names_topics_and_files_with_mistakes(run: Any, home: Path) -> None:
    (home / "pipelines" / "other.toml").write_text("x = 1\n")
    output = json.loads(run("pipelines", "list", "--json").stdout)
    assert output["pipelines"] == [
        {"name": "things", "topic": "things", "window_minutes": 60, "window_zone": "UTC", "raw_root": "/onceover/raw"}
    ]
    assert output["wrong"] == ["pipelines/other.toml"]


@pytest.mark.spark
def test_sql_is_checked_with_spark_and_its_types_are_printed(run: Any, home: Path) -> None:
    right = (home / "pipelines" / "things.toml").read_text()
    wrong = right.replace('"value.place"', '"value.plaice"').replace("onceover-things", "onceover-other")
    (home / "pipelines" / "other.toml").write_text(wrong)
    result = run("pipelines", "check", "--json")
    assert result.exit_code == 78
    output = json.loads(result.stdout)
    assert [(m["file"], m["key"]) for m in output["mistakes"]] == [("pipelines/other.toml", "contract.keys.place")]
    columns = {p["name"]: p["columns"] for p in output["pipelines"]}
    assert [key["type"] for key in columns["things"]["keys"]] == ["text"]
    assert columns["other"] is None
