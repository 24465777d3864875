"""Items that a thread makes while those before them are worked on: reading overlaps with computing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")


def read_ahead(items: Generator[T, None, None], most: int = 1) -> Generator[T, None, None]:
    """Yield the items, in order, of which a thread keeps at most so many ready, and makes one more. What making them
    raises is raised here, in its place. Closing this ends the thread, after the item that it is making."""
    ready: queue.Queue[tuple[T | None, BaseException | None, bool]] = queue.Queue(most)
    is_closed = threading.Event()

    def make() -> None:
        try:
            with closing(items):
                for item in items:
                    ready.put((item, None, False))
                    if is_closed.is_set():
                        return
            ready.put((None, None, True))
        except BaseException as error:  # noqa: BLE001 - raised in the other thread
            ready.put((None, error, True))

    thread = threading.Thread(target=make, name="read ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error, is_last = ready.get()
            if error is not None:
                raise error
            if is_last:
                return
            yield item  # type: ignore[misc]
    finally:
        is_closed.set()
        while thread.is_alive():  # it may wait for room
            try:
                ready.get(timeout=0.05)
            except queue.Empty:
                continue
