"""Restatements: windows of the past whose records count under a later version of the contract than their IDs have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Restatement:
    """The windows from `start` to before `end`, whose records have that version of the contract, or a later one by
    their IDs. A pipeline's restatements have the numbers 1, 2, ..."""

    number: int
    start: datetime
    end: datetime
    version: int
    who: str
    why: str
    created_at: datetime

    def covers(self, window_start: datetime) -> bool:
        return self.start <= window_start < self.end
