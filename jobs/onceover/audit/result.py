"""Results of an audit of the log: what Kafka and raw hold of a window, what its rows count, and their differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from onceover.model.digest import EMPTY, Digest


class Difference(StrEnum):
    """A way in which an ID differs between Kafka's log, raw and the ledger. An ID counts under the first that holds,
    in this order."""

    SEVERAL = "several contents or windows in raw"
    OTHER_CONTENT = "another content in raw"
    STATED_LOST = "held, but accepted as lost"
    NOT_IN_RAW = "in Kafka, not in raw"
    NOT_IN_LOG = "in raw, not in Kafka"
    COMPACTED = "compacted away in Kafka"
    OTHER_WINDOW = "in another window's file"
    UNACCOUNTED = "that no landing accounts for"


CONFLICTS = frozenset({Difference.SEVERAL, Difference.OTHER_CONTENT})


@dataclass(frozen=True, slots=True)
class HeldRecords:
    """The records of a window that Kafka's log and raw hold now, each ID once, by where they are: `lines` are those of
    raw, `unaccounted` the IDs that no landing accounts for, `conflicts` the contents of IDs that have several."""

    both: int = 0
    only_in_raw: int = 0
    only_in_kafka: int = 0
    lines: int = 0
    unaccounted: int = 0
    conflicts: int = 0
    digest: Digest = EMPTY  # without IDs that have several contents under one leader epoch

    @property
    def count(self) -> int:
        return self.both + self.only_in_raw + self.only_in_kafka

    @property
    def kafka(self) -> int:
        return self.both + self.only_in_kafka

    @property
    def raw(self) -> int:
        return self.both + self.only_in_raw


@dataclass(slots=True)
class WindowAudit:
    """A window, or quarantine if `start` is None. `counted` are the records its aggregates count, `rows` the number of
    their rows that differ from the records that are held, and the first of them. Both are None if `not_compared` says
    why. `counted` is also None if unknown."""

    start: datetime | None
    held: HeldRecords = HeldRecords()
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
            self.counted in (None, self.held.digest) and (self.rows is None or not self.rows[0])
        )

    def as_dict(self) -> dict[str, Any]:
        held = self.held
        return {
            "window": self.start or "quarantine",
            "equal": self.is_equal,
            "held": held.count,
            "held_by_both": held.both,
            "only_in_raw": held.only_in_raw,
            "only_in_kafka": held.only_in_kafka,
            "unaccounted": held.unaccounted,
            "kafka": held.kafka,
            "raw": held.raw,
            "raw_lines": held.lines,
            "aggregates": None if self.counted is None else self.counted.records,
            "aggregates_equal": None if self.counted is None else self.counted == held.digest,
            "rows_differing": None if self.rows is None else self.rows[0],
            "rows": [] if self.rows is None else self.rows[1],
            "not_compared": self.not_compared,
            "ids": {str(kind): {"count": n, "first": list(ids)} for kind, (n, ids) in self.differences.items()},
        }
