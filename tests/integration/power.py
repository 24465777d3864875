"""The end of a server as a power cut makes it."""

from __future__ import annotations

import psutil

from onceover_local.stack.process import Process


def cut_power(process: Process) -> None:
    """Kill the running process, and wait until it is gone."""
    pid = process.find_pid()
    assert pid is not None
    found = psutil.Process(pid)
    found.kill()
    found.wait(30)
