"""The loopback port of each listener: a free one, chosen once and kept, replaced only if another program took it."""

from __future__ import annotations

import json
import random
import socket
import threading
from pathlib import Path
from typing import Final

from onceover.errors import TransientError
from onceover_local.stack.files import write_whole

LOOPBACK: Final = "127.0.0.1"
_LOWEST: Final = 15_000
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Ports:
    """The kept ports of one stack, guarded by the stack's lock between processes and by a lock between threads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def read_all(self) -> dict[str, int]:
        try:
            ports: dict[str, int] = json.loads(self._file.read_text())
        except (FileNotFoundError, ValueError):  # an unreadable file loses nothing: other ports are as good
            return {}
        return ports

    def __getitem__(self, name: str) -> int:
        return self.read_all()[name]

    def settle(self, names: tuple[str, ...]) -> None:
        """Give each listener that is about to start a free port, its old one if possible."""
        with self._lock:
            kept = self.read_all()
            lacking = [name for name in names if name not in kept or not is_free(kept[name])]
            for name in lacking:
                kept[name] = _choose(set(kept.values()))
            if lacking:
                write_whole(self._file, json.dumps(kept, indent=2) + "\n")


def is_free(port: int) -> bool:
    """Return whether a server could listen there now. SO_REUSEADDR, as servers set it: old connections hold no port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def is_listening(port: int) -> bool:
    """Return whether a program listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _choose(taken: set[int]) -> int:
    # Below the ports that the kernel hands to outgoing connections: any client could sit on one of those at a restart.
    try:
        ceiling = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError):
        ceiling = 32_768
    if ceiling <= _LOWEST + 1_000:
        ceiling = 60_000
    for _ in range(1_000):
        port = random.randrange(_LOWEST, ceiling)
        if port not in taken and is_free(port):
            return port
    raise TransientError(f"found no free port on {LOOPBACK} between {_LOWEST} and {ceiling}; stop programs that listen")
