"""Records that Kafka has and shows to no reader of committed ones: those behind an open transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.model.window import format_second
from onceover.model.wording import pluralize


@dataclass(frozen=True, slots=True)
class HiddenOffsets:
    """So many offsets of a Kafka partition from `first` on, the last stable offset, up to the high watermark. `since`:
    when ingest first saw the open transaction there, None if it did not yet."""

    kafka_partition: int
    first: int
    count: int
    since: datetime | None

    def __str__(self) -> str:
        since = f", at least since {format_second(self.since)}" if self.since else ""
        return (
            f"Kafka partition {self.kafka_partition}: an open transaction hides {pluralize(self.count, 'offset')} from "
            f"{self.first} on{since}"
        )
