"""What a job prints at its end, and logs: one line each, whatever a producer or a server has written into it."""

from __future__ import annotations

import subprocess
import sys

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
