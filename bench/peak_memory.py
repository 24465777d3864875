"""The most memory that Spark's processes held at one moment."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

import psutil

_EVERY_SECONDS = 0.1


class PeakMemory:
    """Watches a JVM and the processes below it during the block: the most resident bytes of the JVMs in `jvm`, of all
    Python workers together in `workers`."""

    def __init__(self, jvm: int) -> None:
        self.jvm = self.workers = 0
        self._root, self._ended = psutil.Process(jvm), Event()
        self._thread = Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            jvm = workers = 0
            for process in (self._root, *self._root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    held = process.memory_info().rss
                    if process.name() == "java":
                        jvm += held
                    else:
                        workers += held
            self.jvm, self.workers = max(self.jvm, jvm), max(self.workers, workers)
