"""A conflict: one ID with several contents, and the decision which of them counts."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.line import encode_id
from onceover.model.offsets import KafkaPartition
from onceover.model.window import from_ms


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's choice of the content that counts for one ID: `kept` is its hash in the `Suspect`."""

    source: KafkaPartition
    offset: int
    kept: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """One ID with several contents or several event times: the hash of each content, with its event time in ms."""

    source: KafkaPartition
    offset: int
    contents: tuple[tuple[str, int], ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "id": encode_id(self.source, self.offset).decode(),
            "contents": [{"hash": h, "event_time": from_ms(ms)} for h, ms in self.contents],
        }
