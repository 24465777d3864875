"""Answers as a person reads them in a pipe: tables, sentences, sections; and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from onceover.cli.output import Answer, Section, Table, print_answer

Show = Callable[..., str]
NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
ROWS = [{"window": NOON, "records": 1_200, "why": None}, {"window": NOON, "records": 7, "why": "a\nforged\x1b[2J line"}]


def test_table_formats_moments_numbers_and_what_is_missing(show: Show) -> None:
    assert show(Table(ROWS, "window", ">records", ("failed", "why"), ("twice", lambda row: row["records"] * 2))) == (
        "window             records  failed                 twice\n"
        "2026-03-01T12:00Z    1,200  -                      2,400\n"
        "2026-03-01T12:00Z        7  a\\nforged\\x1b[2J line  14\n"
    )


def test_table_says_yes_and_no(show: Show) -> None:
    assert show(Table([(True, 1), (False, 0)], ("flag", 0), ("number", 1))).split() == (
        ["flag", "number", "yes", "1", "no", "0"]
    )


def test_long_table_counts_the_rows_that_are_left_out(show: Show) -> None:
    rows = [(number,) for number in range(60)]
    assert show(Table(rows, ("n", 0))).splitlines()[-2:] == ["49", "and 10 more; --json lists all"]
    assert show(Table(rows, ("n", 0), most=None)).splitlines()[-1] == "59"


def test_table_without_rows_is_its_sentence_or_nothing(show: Show) -> None:
    assert show(Table([], "window", empty="no window matches")) == "no window matches\n"
    assert show(Table([], "window"), None, Section("What is wrong", [None])) == ""


def test_sentence_is_one_line_and_neither_markup_nor_control(show: Show) -> None:
    assert show("[red]x\x1b[2J\ny", Section("Title", ["[b]"])) == "[red]x\\x1b[2J\\ny\n\nTitle\n  [b]\n"


def test_json_is_the_value_and_none_of_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(Answer({"at": NOON, "rows": ROWS[:1]}, ["a sentence"]), as_json=True)
    assert json.loads(capsys.readouterr().out)["rows"][0]["records"] == 1_200
