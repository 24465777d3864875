"""What every start of Spark prints, and no user can do anything about, stays out of a terminal."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_STDERR: Final = 2
_CHUNK: Final = 1 << 16
_NOISE: Final = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector"
    rb"|Using Spark's default log4j profile: "
    rb"|Setting default log level to "
    rb"|To adjust logging level use sc\.setLogLevel"
    rb"|\S+ \S+ WARN (NativeCodeLoader: Unable to load native-hadoop library"
    rb"|Utils: (Your hostname, \S+ resolves to a loopback address|Set SPARK_LOCAL_IP if you need))"
)
"""How these lines begin; the JVM prints the first without asking any setting."""


@contextmanager
def leave_out_noise() -> Iterator[None]:
    """Give the processes that the block starts a stderr of their own, and pass its lines on to this process's stderr
    for as long as they run, but for what every start of Spark prints."""
    try:
        own = os.dup(_STDERR)
    except OSError:  # this process has none
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, own), daemon=True, name="Spark's stderr").start()
    try:
        yield
    finally:
        os.dup2(own, _STDERR)


def _pass_on(reading: int, own: int) -> None:
    """Pass whole lines on until the last writer has closed its end; a reader that is gone must not hold up Spark."""
    rest = b""
    while chunk := os.read(reading, _CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if not _NOISE.match(line))
        if len(rest) > _CHUNK:
            kept, rest = kept + rest, b""
        _write(own, kept)
    _write(own, rest)
    os.close(reading)
    os.close(own)


def _write(file: int, content: bytes) -> None:
    with suppress(OSError):
        while content:
            content = content[os.write(file, content) :]
