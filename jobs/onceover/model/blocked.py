"""The place in a Kafka partition that no reader gets past."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Blocked:
    """Offsets that Kafka's log holds and no reader gets, and the reason. `is_due`: it is time to read them again."""

    offsets: OffsetRange
    why: str
    is_due: bool = False
