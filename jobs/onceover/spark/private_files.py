"""The files of a driver's JVM, which hold records: blocks, spilled and shuffled ones, in Spark's local folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keep_files_private() -> Iterator[None]:
    """Let only this user read what programs write that the block starts. They keep this umask; this process gets its
    own back, so wrap a start that no other thread's writing overlaps."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def keeps_others_out() -> bool:
    """Return whether this process' umask keeps others from writing to its files, and from its sockets."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask & 0o022 == 0o022
