"""A frozen server, as on a machine that hangs: its connections stay open, and it does not answer."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onceover_local.stack.process import wait_for


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Until the block ends, from when every thread has stopped: each does when it is next scheduled, and on a busy
    machine one may still answer until then."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: _is_still(pid), 20, f"every thread of process {pid} to stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_still(pid: int) -> bool:
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:
        return False  # a thread has ended meanwhile
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)
