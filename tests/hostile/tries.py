"""A run of tries: each has a number, which a failure names with what went wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onceover.errors import OnceoverError

SHARE = 10
"""`make test` runs every tenth of a family's tries, `make test-faults` all of them."""


def few_or_all(count: int) -> pytest.MarkDecorator:
    """Parametrize a test by the number of its tries: a share in `make test`, all in `make test-faults`."""
    both = [
        pytest.param(count // SHARE, id="few"),
        pytest.param(count, id="all", marks=pytest.mark.largest),
    ]
    return pytest.mark.parametrize("count", both)


def is_refused(attempt: Callable[[], object], seconds: float = 1.0) -> str | None:
    """Return what is wrong with how an attempt ended, None if nothing: a value, or an error of ours with a message,
    within that much processor time, so that a busy machine fails no try. Errors are escaped where they are shown, so
    their text may hold anything but nothing endless."""
    begun = _sum_cpu_seconds()
    try:
        attempt()
    except OnceoverError as error:
        if not 10 <= len(str(error)) <= 5_000:
            return f"a message of {len(str(error))} characters"
    except Exception as error:  # noqa: BLE001 - this is what a try looks for
        return f"{type(error).__name__}: {str(error)[:150]}"
    took = _sum_cpu_seconds() - begun
    return f"took {took:.1f} s of a processor" if took > seconds else None


def _sum_cpu_seconds() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


@contextmanager
def bounded_memory(mebibytes: int = 200) -> Iterator[None]:
    """Fail if this process grows by more than that, at its largest, however large it was once before."""
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark to what is taken now
    before = _read_high_water()
    yield
    grown = _read_high_water() - before
    assert grown <= mebibytes, f"this process grew by {grown} MiB"


def _read_high_water() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found, "this system keeps no high-water mark of memory"
    return int(found[1]) >> 10
