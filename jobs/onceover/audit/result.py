"""Results of an audit of the log: the three sides of a window, and their differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from onceover.model.digest import Digest


class Difference(StrEnum):
    """A way in which an ID differs between Kafka's log and raw."""

    NOT_IN_RAW = "in Kafka, not in raw"
    NOT_IN_LOG = "in raw, not in Kafka"
    COMPACTED = "compacted away in Kafka"
    SEVERAL = "several contents or windows in raw"
    OTHER_CONTENT = "another content in raw"
    OTHER_WINDOW = "in another window's file"


@dataclass(frozen=True, slots=True)
class Side:
    """The distinct records of a window on one side, and the number of their lines."""

    digest: Digest
    lines: int


@dataclass(slots=True)
class WindowAudit:
    """A window, or quarantine if `start` is None. `counted` are the records its aggregates count, `rows` the number of
    their rows that differ from Kafka's records, and the first of them. Both are None if `not_compared` says why:
    the log no longer holds all of the window, it is open, or it changed during the audit. `counted` is also None if
    unknown."""

    start: datetime | None
    log: Side
    raw: Side
    counted: Digest | None = None
    rows: tuple[int, list[str]] | None = None
    not_compared: str | None = None
    differences: dict[Difference, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether all sides that were compared hold the same set."""
        if any(kind is not Difference.COMPACTED for kind in self.differences):
            return False
        return self.not_compared is not None or (
            self.counted in (None, self.log.digest) and (self.rows is None or not self.rows[0])
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "window": self.start or "quarantine",
            "equal": self.is_equal,
            "kafka": self.log.digest.records,
            "raw": self.raw.digest.records,
            "raw_lines": self.raw.lines,
            "aggregates": None if self.counted is None else self.counted.records,
            "aggregates_equal": None if self.counted is None else self.counted == self.log.digest,
            "rows_differing": None if self.rows is None else self.rows[0],
            "rows": [] if self.rows is None else self.rows[1],
            "not_compared": self.not_compared,
            "ids": {str(kind): {"count": n, "first": list(ids)} for kind, (n, ids) in self.differences.items()},
        }
