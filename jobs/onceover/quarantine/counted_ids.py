"""IDs counted once each, by reason, however many: in a temporary SQLite database, which spills to disk."""

from __future__ import annotations

import sqlite3
from typing import Final

from onceover.lines.line_format import Line
from onceover.model.offsets import KafkaPartition

_RELEASED: Final = -1
_MAX_WAITING: Final = 10_000


class CountedIds:
    """A set of IDs, each with the last reason that was added with it. Holds no content of a record."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # a private file in the folder of SQLITE_TMPDIR, else the system's
        self._database.execute(
            "CREATE TABLE counted (source INTEGER, position INTEGER, reason INTEGER, PRIMARY KEY (source, position)) "
            "WITHOUT ROWID"
        )
        self._sources: dict[KafkaPartition, int] = {}
        self._reasons: dict[str, int] = {}
        self._waiting: list[tuple[int, int, int]] = []

    def close(self) -> None:
        """Delete the database."""
        self._database.close()

    def add(self, line: Line, reason: str | None) -> None:
        """Add the ID of a line; a reason of None says that it was released."""
        source = self._sources.setdefault(line.record.source, len(self._sources))
        number = _RELEASED if reason is None else self._reasons.setdefault(reason, len(self._reasons))
        self._waiting.append((source, line.record.offset, number))
        if len(self._waiting) == _MAX_WAITING:
            self._write()

    def count(self) -> tuple[dict[str, int], int]:
        """Return the numbers of IDs by reason, the largest first, and of those that were released."""
        self._write()
        rows = self._database.execute("SELECT reason, count(*) FROM counted GROUP BY 1 ORDER BY 2 DESC, 1").fetchall()
        names = list(self._reasons)
        return {names[n]: count for n, count in rows if n != _RELEASED}, dict(rows).get(_RELEASED, 0)

    def _write(self) -> None:
        self._database.executemany("INSERT OR REPLACE INTO counted VALUES (?, ?, ?)", self._waiting)
        self._waiting.clear()
