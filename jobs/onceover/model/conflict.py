"""A conflict: one ID with several contents, and the decision which of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import encode_id
from onceover.model.window import from_ms

MOST_SHOWN = 20  # contested IDs in a finding
OLDEST, NEWEST = "oldest", "newest"
NO_CONTENT = ""
"""Hash of no content: of an ID for which it is kept, no record counts."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's choice of the content that counts for one ID: `kept` is its hash in the `ContestedId`. `newest` is
    the hash of the content that Kafka's log held when the contents were compared, None if unknown. `contents` are the
    hashes of those that belong to one window, whether or not its files still hold them."""

    source: KafkaPartition
    offset: int
    kept: str
    newest: str | None = None
    contents: tuple[str, ...] = ()

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(self.source, self.offset, self.offset + 1)


@dataclass(frozen=True, slots=True)
class OwnContents:
    """The hashes of the contents of an ID in conflict that belong to one window, decided on or not, with `newest` as in
    `Decision`."""

    source: KafkaPartition
    offset: int
    newest: str | None
    contents: tuple[str, ...]

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(self.source, self.offset, self.offset + 1)

    def keep(self, kept: str) -> Decision:
        return Decision(self.source, self.offset, kept, self.newest, self.contents)


@dataclass(frozen=True, slots=True)
class ContestedId:
    """One ID with several contents or several event times: the hash of each content, with its event time in ms, None in
    quarantine."""

    source: KafkaPartition
    offset: int
    contents: tuple[tuple[str, int | None], ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "id": encode_id(self.source, self.offset).decode(),
            "contents": [{"hash": h, "event_time": None if ms is None else from_ms(ms)} for h, ms in self.contents],
        }


@dataclass(frozen=True, slots=True)
class Content:
    """One content of an ID in conflict: its window, None for quarantine, and the `leader_epoch` if the log has it."""

    source: KafkaPartition
    offset: int
    hash: str
    window_start: datetime | None
    event_time: datetime | None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Contested:
    """What the ledger knows of a window's conflicts: undecided IDs with several contents, offsets whose
    contents have to be compared, decisions that its certificate does not state, and decided IDs that landed since."""

    undecided: int = 0
    suspected: int = 0
    decided: int = 0
    landed: int = 0
    shown: tuple[ContestedId, ...] = ()  # only the first ones, as evidence


UNCONTESTED = Contested()
