"""The markers of a raw root: `ROOT/PIPELINE/marker/N.json`, the largest N counts.

N only ascends, and no store creates a file over an existing one: of two writers that read the same marker, one can
write the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from onceover.errors import BusyError
from onceover.model.root_marker import OtherFormatError, RootMarker, UnreadableMarkerError, parse_marker
from onceover.raw.layout import Layout
from onceover.raw.store import open_store

KEPT = 20
"""Markers that stay after a new one: the history of owners, and why each took the root."""
_NAME = re.compile(r"([0-9]{1,18})\.json")
_SCRATCH = re.compile(r"\.([0-9]{1,18})\.json\..+\.tmp")


@dataclass(frozen=True, slots=True)
class StoredMarker:
    """A marker and its number N; 0 and no marker for a root without one."""

    number: int
    marker: RootMarker | None


class MarkerFiles:
    """One pipeline's markers in the raw store. Make it in the process that uses it: sessions do not survive a fork."""

    def __init__(self, address: str, layout: Layout) -> None:
        self.folder = layout.marker_folder
        self._store = open_store(address)

    def read_newest(self) -> StoredMarker:
        """Return the marker that counts. Raise UnreadableMarkerError, with its path, if it is not one, OtherFormatError
        if it is of another format."""
        while numbers := self._list_numbers():
            path = self._path(numbers[0])
            content = self._store.read(path)
            if content is None:  # deleted since the listing, so that larger ones exist now
                continue
            return StoredMarker(numbers[0], self._parse(path, content))
        return StoredMarker(0, None)

    def read_newest_readable(self) -> StoredMarker:
        """Return the newest marker that can be read, under the largest number there is, for a writer that replaces
        an unreadable one. Raise OtherFormatError for one of another format, which nothing may replace."""
        numbers = self._list_numbers()
        for number in numbers:
            try:
                return StoredMarker(numbers[0], self._read(number))
            except UnreadableMarkerError:
                continue
        return StoredMarker(numbers[0] if numbers else 0, None)

    def write_next(self, before: StoredMarker, marker: RootMarker) -> StoredMarker:
        """Write the marker that follows `before`, and delete the oldest ones. Raise BusyError if another process wrote
        one since `before` was read."""
        number = before.number + 1
        self._store.create(self._path(number), marker.to_bytes())
        if self._list_numbers()[:1] != [number]:  # a number whose first file was deleted since
            self._store.remove(self._path(number))
            raise BusyError(f"{self.folder} on {self._store.where} has newer markers of another process; try again")
        self._delete_old(number)
        return StoredMarker(number, marker)

    def _list_numbers(self) -> list[int]:
        """List the markers' numbers, the largest first."""
        found = (_NAME.fullmatch(name) for name, _ in self._store.list_files(self.folder))
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def _delete_old(self, newest: int) -> None:
        for name, _ in self._store.list_files(self.folder):
            marker, scratch = _NAME.fullmatch(name), _SCRATCH.fullmatch(name)
            if (marker and int(marker[1]) <= newest - KEPT) or (scratch and int(scratch[1]) < newest):
                self._store.remove(f"{self.folder}/{name}")

    def _path(self, number: int) -> str:
        return f"{self.folder}/{number}.json"

    def _read(self, number: int) -> RootMarker:
        return self._parse(self._path(number), self._store.read(self._path(number)) or b"")

    def _parse(self, path: str, content: bytes) -> RootMarker:
        try:
            return parse_marker(content)
        except (UnreadableMarkerError, OtherFormatError) as error:
            raise type(error)(f"{path} on {self._store.where} {error}") from error
