"""Calls with a deadline: what they return or raise, and what is left of one that hangs."""

from __future__ import annotations

import os
import threading

import pytest

from onceover.deadline import call_within


class Panic(BaseException):
    """What a library of Rust raises."""


def fail(error: BaseException) -> None:
    raise error


def test_call_returns_and_raises_what_was_called() -> None:
    assert call_within(10, lambda: 7) == 7
    with pytest.raises(FileNotFoundError, match="gone"):
        call_within(10, lambda: fail(FileNotFoundError("gone")))
    with pytest.raises(RuntimeError, match="Panic: out of bounds"):
        call_within(10, lambda: fail(Panic("out of bounds")))


def test_call_that_hangs_is_given_up_and_changes_no_other() -> None:
    go_on = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        call_within(0.01, go_on.wait)
    threads = {call_within(10, threading.get_ident) for _ in range(3)}
    go_on.set()
    assert len(threads) == 1, "one thread makes one call after the other"


def test_child_of_a_fork_makes_threads_of_its_own() -> None:
    call_within(10, lambda: None)
    child = os.fork()
    if not child:
        os._exit(call_within(10, lambda: 3))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
