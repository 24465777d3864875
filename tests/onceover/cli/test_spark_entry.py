"""An entry's last printed line, and a command's error when its entry was ended from outside."""

from __future__ import annotations

import sys

import pytest
import typer

from onceover.cli.spark_entry import read_result


def _program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_entrys_answer_is_its_last_printed_line() -> None:
    assert read_result(_program('print("starting"); print(\'{"records": 3}\')')) == {"records": 3}


@pytest.mark.parametrize(
    ("program", "code", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "run the command again for the rest"),
        ("raise SystemExit(143)", 143, "run the command again for the rest"),
        ("raise SystemExit(75)", 75, ""),
    ],
    ids=["killed", "terminated", "busy"],
)
def test_entrys_exit_code_and_error_are_passed_on(
    program: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        read_result(_program(program))
    assert ended.value.exit_code == code
    said = capsys.readouterr().err
    assert says in said if says else said == ""
