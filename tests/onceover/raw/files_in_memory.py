"""One file in memory, read as a raw store reads its files."""

from __future__ import annotations

from onceover.errors import UnreachableError


class Reading:
    """The bytes of a file from `at` on, which break off at the byte `broken`."""

    def __init__(self, data: bytes, at: int, end: int, broken: int | None) -> None:
        self._data, self._at, self._end, self._broken = data, at, end, broken

    def fill(self, view: memoryview) -> None:
        after = self._at + len(view)
        assert after <= self._end, "no byte is read that was not asked for"
        if self._broken is not None and after > self._broken >= self._at:
            raise UnreachableError("a DataNode does not answer")
        view[:] = self._data[self._at : after]
        self._at = after

    def close(self) -> None:
        pass


class FileInMemory:
    """Opens one file, and remembers what was asked for."""

    def __init__(self, data: bytes, broken: int | None = None) -> None:
        self._data, self._broken = data, broken
        self.asked: list[tuple[int, int]] = []

    def open(self, path: str, start: int, end: int) -> Reading:
        assert 0 <= start < end <= len(self._data)
        self.asked.append((start, end))
        return Reading(self._data, start, end, self._broken)
