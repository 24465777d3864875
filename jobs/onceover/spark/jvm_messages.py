"""The lines that every start of Spark's JVM prints, and no user can do anything about, stay out of a terminal."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_STDERR: Final = 2
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
def filter_messages() -> Iterator[int]:
    """Yield a file descriptor that the block gives to a process as its stderr. This process passes on each line of it
    to its own stderr, for as long as the other runs, but for what every start of Spark prints."""
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), daemon=True, name="Spark's stderr").start()
    try:
        yield writing
    finally:
        os.close(writing)


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if not _NOISE.match(line):
                with suppress(OSError):  # a reader that is gone must not hold up Spark
                    while line:
                        line = line[os.write(_STDERR, line) :]
