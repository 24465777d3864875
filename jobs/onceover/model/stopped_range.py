"""The place in a Kafka partition before which ingest stops, while it goes on with the others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from onceover.model.offsets import OffsetRange


class StopCause(StrEnum):
    """Why ingest stops there: Kafka's log holds the offsets, but no reader gets them; a batch of theirs failed so that
    a record is to blame, and it is not known yet which; or the schema that wrote a value is not known yet."""

    UNREADABLE = "unreadable"
    SUSPECT = "suspect"
    UNKNOWN_SCHEMA = "unknown_schema"


@dataclass(frozen=True, slots=True)
class StoppedRange:
    """The offsets, and why reading them failed. `is_due`: it is time to read unreadable ones again."""

    offsets: OffsetRange
    why: str
    is_due: bool = False
