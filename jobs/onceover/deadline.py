"""A deadline for a call that may hang and takes none: a thread makes the call, and is given up when the time is over.

A thread that is given up changes nothing here any more. It is a daemon, so that it does not keep the process alive.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class _Caller:
    """A thread that makes one call after the other: to start one takes longer than a small request."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._ends: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._is_given_up = False
        Thread(target=self._work, name="calls with a deadline", daemon=True).start()

    def make(self, call: Callable[[], Any], seconds: float) -> tuple[Any, BaseException | None]:
        self._calls.put(call)
        try:
            return self._ends.get(timeout=seconds)
        except BaseException:
            self._is_given_up = True
            raise

    def _work(self) -> None:
        while not self._is_given_up:
            call = self._calls.get()
            try:
                self._ends.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
                self._ends.put((None, error))
            del call


_idle: list[_Caller] = []
os.register_at_fork(after_in_child=_idle.clear)  # a child has none of the threads


def call_within(seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns, or raise what it raises, a panic as RuntimeError. Raise TimeoutError if it takes
    longer, which says nothing of what it did, or will do."""
    try:
        caller = _idle.pop()
    except IndexError:
        caller = _Caller()
    try:
        result, error = caller.make(call, seconds)
    except Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    _idle.append(caller)
    if error is None:
        return result  # type: ignore[no-any-return]
    try:
        if not isinstance(error, Exception):
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise error
    finally:
        del error  # which holds this frame, and with it what the call had opened
