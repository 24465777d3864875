"""Where processes listen."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from onceover_local.stack.ports import LOOPBACK

LOOPBACKS = {LOOPBACK, f"::ffff:{LOOPBACK}"}


def list_heard(pids: Iterable[int]) -> list[str]:
    """Return the address of each socket on which one of these processes listens."""
    return [
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
