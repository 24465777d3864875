"""What a job prints at its end, and logs: one line each, whatever a producer or a server has written into it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import logging
from onceover.entrypoint import run
from onceover.errors import TerminalError

def main(arguments):
    logging.getLogger("onceover").warning("topic %s", "a\\x1b[2Jb\\n2026-01-01 forged")
    try:
        raise ValueError("in\\x1bside")
    except ValueError:
        logging.getLogger("onceover").exception("failed")
    raise TerminalError("bad\\x1b]0;title\\x07 name\\nsecond line")

run("job", main)
"""


def test_job_shows_no_control_character_of_what_it_quotes() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[-1]) == (1, r"job: bad\x1b]0;title\x07 name\nsecond line")
    assert lines[0].endswith(r"WARNING topic a\x1b[2Jb\n2026-01-01 forged")
    assert "Traceback (most recent call last):" in lines, "a traceback keeps its lines"
    assert all(line.isprintable() for line in lines)


STARTS = (
    "import subprocess, sys; from onceover.entrypoint import open_closed_streams; {}; "
    "sys.exit(subprocess.run(['sh', '-c', 'echo said']).returncode)"
)


@pytest.mark.parametrize(("first", "code"), [("pass", 1), ("open_closed_streams()", 0)])
def test_closed_streams_are_open_in_what_a_job_starts(first: str, code: int) -> None:
    command = f'{sys.executable} -c "{STARTS.format(first)}" >&-'
    assert subprocess.run(["bash", "-c", command], stderr=subprocess.DEVNULL, check=False).returncode == code


LOGS = """
import sys
from onceover.entrypoint import run
from onceover.ingest.report import Progress, make_reporter

run("job", lambda arguments: make_reporter("log")(Progress(1, 1, 0, 1, 0.0, 0.0, {}, None, False, 0)))
"""


def test_job_with_a_full_disk_of_logs_exits_as_ever() -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", LOGS], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "lines of progress cannot be written: [Errno 28]" in done.stderr
