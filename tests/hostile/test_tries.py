"""The bounds of a try: each can fail, and neither a busy machine nor an earlier test decides."""

from __future__ import annotations

import subprocess
import sys
from threading import Event

import pytest
from tests.hostile.tries import bounded_memory, is_refused

LARGE = 150 << 20


def test_try_that_computes_for_long_fails_in_a_child_too() -> None:
    busy = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    assert "of a processor" in (is_refused(lambda: exec(busy, {}), 0.3) or "")
    assert "of a processor" in (is_refused(lambda: subprocess.run([sys.executable, "-c", busy]), 0.3) or "")


def test_try_that_waits_for_a_busy_machine_does_not_fail() -> None:
    assert is_refused(lambda: Event().wait(0.5), 0.3) is None


def test_growth_fails_though_the_process_was_as_large_before() -> None:
    bytearray(b"x" * LARGE)
    with pytest.raises(AssertionError, match="this process grew by"), bounded_memory(100):
        bytearray(b"x" * LARGE)
    with bounded_memory(100):
        bytearray(b"x" * (LARGE // 10))
