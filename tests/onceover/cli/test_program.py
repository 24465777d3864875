from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.onceover.cli.conftest import COMMANDS
from typer.core import TyperGroup

from onceover.cli.app import app
from onceover.cli.exit_codes import EVERYWHERE
from onceover.errors import BusyError, ConfigurationError, UnreachableError, UsageError
from onceover_local.stack.process import wait_for

ONCEOVER = str(Path(sys.executable).with_name("onceover"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_help_has_examples_and_exit_codes(run: Any, command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"$ onceover {' '.join(command)}" in result.stdout
    assert all(f"\n   {code} " in result.stdout for code in EVERYWHERE)


def test_help_groups_the_commands_by_purpose(run: Any) -> None:
    shown = run("--help").stdout
    panels = [line.split()[1] for line in shown.splitlines() if line.startswith("╭─")]
    assert panels == ["Options", "Inspect", "Repair", "Verify", "Decide", "Maintain", "Run"]
    listed = shown.partition("╭─ Maintain")[2].partition("╭─ Run")[0]
    maintaining = {name for name, *_ in COMMANDS if f"│ {name} " in listed}
    assert maintaining == {"quarantine", "offsets", "compact", "retention", "ledger"}


def test_every_command_is_in_the_list_above() -> None:
    def walk(of: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        if not isinstance(of, TyperGroup):
            assert of.load().name == path[-1]
            return {path}
        context = typer.Context(of)
        return {
            each for name in of.list_commands(context) for each in walk(of.get_command(context, name), (*path, name))
        }

    assert walk(typer.main.get_command(app)) == set(COMMANDS)


def test_exit_codes_shown_are_those_of_the_errors() -> None:
    assert {UsageError.exit_code, BusyError.exit_code, UnreachableError.exit_code, ConfigurationError.exit_code} <= set(
        EVERYWHERE
    )


@pytest.mark.parametrize(
    "words", [("nosuch",), ("windows",), ("windows", "things", "--nosuch"), ("repair", "things", "--from", "x")]
)
def test_wrong_call_is_refused_in_one_line(run: Any, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize("words", [(), ("stack",), ("pipelines",), ("ledger",)])
def test_group_without_a_command_shows_its_commands_only(run: Any, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert ("─ Commands" if words else "─ Inspect") in result.output
    assert "onceover: " not in result.output


HEAVY = ("pyspark", "psycopg", "hdfs", "confluent_kafka", "sqlalchemy", "requests", "airflow", "pyarrow")


@pytest.mark.parametrize(
    ("words", "typed", "listed"),
    [
        (["--help"], "", "repair"),
        (["pipelines", "--help"], "", "migrate"),
        ([], "onceover ", "repair"),
        ([], "onceover pipelines ", "migrate"),
    ],
)
def test_listing_commands_imports_none_of_them(words: list[str], typed: str, listed: str) -> None:
    code = f"import sys; from onceover.cli.app import app\ntry: app({words}, prog_name='onceover')\nfinally:\n"
    code += f"    print('loaded:', *(m for m in {HEAVY} if m in sys.modules))"
    completing = {"_ONCEOVER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()))}
    environment = {**os.environ, **(completing if typed else {})}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert listed in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_pipe_gets_no_colour_and_a_terminal_does(home: Path) -> None:
    command = [ONCEOVER, "pipelines", "list"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"things" in piped
    assert b"\x1b" not in piped

    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0
    assert b"\x1b[" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end was closed: how Linux says end of file here
        return b""


def test_ctrl_c_exits_130_without_a_traceback(home: Path) -> None:
    # A PostgreSQL that accepts and never answers keeps the command waiting.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://reader@127.0.0.1:{silent.getsockname()[1]}/nothing"
        process = subprocess.Popen(
            [ONCEOVER, "windows", "things"],
            env={**os.environ, "ONCEOVER_POSTGRES": address},
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(60)
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        connection.close()
    assert process.returncode == 130
    assert "Traceback" not in stderr


def test_ingest_becomes_the_job_itself(home: Path) -> None:
    # The message is the job's own, from the process that was started as the command.
    done = subprocess.run([ONCEOVER, "ingest", "things"], capture_output=True, text=True, check=False)
    assert done.returncode == 75
    (line,) = done.stderr.splitlines()
    assert line.startswith("ingest: the address of kafka is unknown")


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, -signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        pytest.param(
            *(signal.SIGKILL, -signal.SIGKILL),
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death"),
        ),
    ],
)
def test_ended_commands_entry_cleans_up(tmp_path: Path, number: signal.Signals, code: int) -> None:
    marks, child = tmp_path / "marks", tmp_path / "entry.py"
    child.write_text(
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"marks = pathlib.Path({str(marks)!r})\n"
        "try:\n    marks.write_text('holds')\n    time.sleep(60)\n"
        "finally:\n    time.sleep(0.3)\n    marks.write_text('cleaned up')\n"
    )
    command = f"import sys; from onceover.cli.spark_entry import run_entry; run_entry([sys.executable, {str(child)!r}])"
    process = subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.DEVNULL)
    wait_for(lambda: marks.exists() and marks.read_text() == "holds", 30, "the entry")
    process.send_signal(number)
    assert process.wait(30) == code
    if number == signal.SIGKILL:  # a killed command waits for nothing
        wait_for(lambda: marks.read_text() == "cleaned up", 30, "the entry to clean up")
    assert marks.read_text() == "cleaned up"


@pytest.mark.parametrize("words", [["pipelines", "list"], ["pipelines", "list", "--json"], ["--help"]])
def test_full_disk_below_the_answer_is_one_line(home: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([ONCEOVER, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device: the answer, or a file, could not be written whole" in done.stderr


@pytest.mark.parametrize("has_reader", [True, False], ids=["full disk", "pipe without a reader"])
def test_what_is_said_beside_the_answer_may_be_lost(home: Path, has_reader: bool) -> None:
    """Of a shell that buffers, as most do: what is left would else be written once more as Python ends."""
    program = (
        "from onceover.cli.app import app; from onceover.cli.output import print_error, print_progress; "
        "print_progress('a'); print_error('b'); app(['pipelines', 'list', '--json'])"
    )
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as full, os.fdopen(writer, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=full if has_reader else pipe,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            check=False,
        )
    assert done.returncode == 0
    assert [each["name"] for each in json.loads(done.stdout)["pipelines"]] == ["things"]


@pytest.mark.parametrize(("words", "code"), [("pipelines list >&-", 0), ("windows none >&- 2>&-", 2)])
def test_closed_streams_are_as_if_nobody_reads_them(home: Path, words: str, code: int) -> None:
    done = subprocess.run(["bash", "-c", f"exec {ONCEOVER} {words}"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
