"""The memory that a reader of Kafka may take: a batch of some kilobytes can decompress to many gigabytes."""

from __future__ import annotations

import resource
from typing import Final

MAX_BYTES: Final = 2 << 30
"""Of a process that reads and works on its records. The largest record takes 32 MiB, and some copies."""
MAX_PROBE_BYTES: Final = 1 << 30
"""Of a process that only reads: what it gets, the others get too."""


def limit_memory(most: int) -> None:
    """Have this process fail, instead of the machine, if its data takes more than `most` bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
