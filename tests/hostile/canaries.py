"""Canaries: while they watch, nothing may be started, connected to, or opened beyond the folders of a test."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.hostile.texts import numbers

STARTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"}
)
CONNECTS = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"})
WRITES = frozenset({"os.remove", "os.rename", "os.rmdir", "os.chmod", "os.chown", "os.mkdir", "os.link", "os.symlink"})
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
)
_PLAIN = ("/dev/null", "/dev/urandom", "/proc/self/", "/usr/share/zoneinfo", "/etc/localtime", "/etc/passwd")
"""What Python reads by itself: the user's name is looked up in /etc/passwd, which no test's folder holds."""


class _Watch:
    def __init__(self, folders: Sequence[Path], connects: Sequence[str], *, refuse: bool) -> None:
        self.refuse = refuse
        self.folders = tuple(str(each.resolve()) for each in folders)
        self.connects = frozenset(connects)
        self.seen: list[str] = []

    def judge(self, event: str, args: tuple[Any, ...]) -> None:
        if event in STARTS or (event in CONNECTS - self.connects):
            self.seen.append(f"{event}{args!r}"[:200])
            if self.refuse:
                raise PermissionError(f"a canary refuses {event}")
        elif event in WRITES:
            self._judge_path(event, args[0], writes=True)
        elif event == "open" and isinstance(args[0], str | bytes | os.PathLike):
            flags = args[2] if isinstance(args[2], int) else 0
            self._judge_path(event, args[0], writes=bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))

    def _judge_path(self, event: str, given: Any, *, writes: bool) -> None:
        path = os.path.realpath(os.fsdecode(given)) if not isinstance(given, int) else ""
        allowed = self.folders if writes else (*self.folders, *_LIBRARIES, *_PLAIN)
        # importlib.metadata opens each entry of sys.path that is no folder, in case it is an archive.
        searched = () if writes else map(os.path.realpath, sys.path)
        if path and not path.startswith(allowed) and not path.endswith(".pyc") and path not in searched:
            self.seen.append(f"{event} {path[:150]!r}")


_watch: _Watch | None = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    watch = _watch
    if watch is not None:
        watch.judge(event, args)


sys.addaudithook(_hook)


@contextmanager
def watching(*folders: Path, connects: Sequence[str] = (), refuse: bool = False) -> Iterator[list[str]]:
    """Yield the list of what was started, connected to, or opened outside of these folders during the block; with
    `refuse`, no start and no connection comes about. Events of sockets that `connects` names are the test's own."""
    global _watch
    mine = _watch = _Watch(folders, connects, refuse=refuse)
    try:
        # What Python compiles of a module that is imported meanwhile is no doing of ours.
        with patch.object(sys, "dont_write_bytecode", True):
            yield mine.seen
    finally:
        _watch = None


def require_harmless(attempt: Callable[[int], str | None], count: int, *folders: Path) -> None:
    """Require that none of so many tries says what is wrong with it, or touches what it must not."""
    with watching(*folders) as seen:
        wrong = {number: found for number in numbers(count) if (found := attempt(number))}
    assert (wrong, seen) == ({}, [])
