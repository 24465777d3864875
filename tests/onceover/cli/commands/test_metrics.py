"""`onceover metrics`: printed once, and served until a signal ends it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from onceover_local.stack import Stack

ONCEOVER = str(Path(sys.executable).with_name("onceover"))


def test_once_without_a_ledger_reports_down_on_both_outputs(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEOVER_POSTGRES", "postgresql://me:secret@127.0.0.1:1/onceover")
    result = run("metrics", "--once")
    assert result.exit_code == 75
    assert [line for line in result.stdout.splitlines() if not line.startswith("#")] == ["onceover_up 0.0"]
    (line,) = result.stderr.splitlines()
    assert "PostgreSQL at 127.0.0.1:" in line
    assert "secret" not in result.output


@pytest.mark.parametrize("words", [("--port", "65536"), ("--port", "-1"), ("--port", "x"), ("--overdue-minutes", "0")])
def test_malformed_arguments_are_refused(run: Any, home: Path, words: tuple[str, ...]) -> None:
    result = run("metrics", *words)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


@pytest.mark.stack
def test_once_prints_the_ledgers_numbers(run: Any, plant: Any) -> None:
    plant.batch(0, {1: 100, 2: 40})
    plant.close_before(2)
    result = run("metrics", "--once")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "onceover_up 1.0" in lines
    assert f'onceover_records_landed_total{{kafka_partition="0",pipeline="{plant.name}"}} 140.0' in lines
    assert f'onceover_windows{{pipeline="{plant.name}",state="closed"}} 1.0' in lines
    assert f'onceover_windows{{pipeline="{plant.name}",state="open"}} 1.0' in lines
    assert f'onceover_driver_state{{pipeline="{plant.name}",state="alive"}} 1.0' in lines


@pytest.mark.stack
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_exporter_serves_until_a_signal(stack: Stack, number: signal.Signals, code: int) -> None:
    with subprocess.Popen([ONCEOVER, "metrics", "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            (where,) = re.findall(r"http://127\.0\.0\.1:\d+/metrics", line)
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(where, timeout=30) as answer:
                assert b"\nonceover_up 1.0\n" in answer.read()
            process.send_signal(number)
            assert process.wait(30) == code
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()  # else the block's end waits for it for ever


@pytest.mark.stack
def test_second_exporter_on_the_same_port_is_refused(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        command = [ONCEOVER, "metrics", "--port", str(other.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 75
    (line,) = done.stderr.splitlines()
    assert "is not available" in line
