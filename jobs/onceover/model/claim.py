"""A repair's claim: the windows that it holds, with their landings, and the ranges of these by leader epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from onceover.model.digest import Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import CompactedFile
from onceover.model.release import Release

CLAIM_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ClaimedLanding:
    """One landing of a claimed window from the ledger: the digest of each part with its batch's offset range; for a
    `release`, or `exact` IDs, the range runs from its first to its last ID in the Kafka partition. `spans` are the
    batch's ranges by leader epoch."""

    landing_id: int
    parts: tuple[tuple[OffsetRange, Digest], ...]
    release: Release | None = None
    exact: tuple[OffsetRange, ...] = ()  # the ranges of a batch with several of a Kafka partition
    spans: tuple[EpochSpan, ...] = ()  # none: of unknown epochs

    @property
    def readings(self) -> tuple[EpochSpan, ...]:
        """Return its ranges, each of one leader epoch, None for an unknown one."""
        return self.spans or tuple(EpochSpan(offsets, None) for offsets in self.ids)

    @property
    def ids(self) -> tuple[OffsetRange, ...]:
        """Return the offsets among which all of its records are."""
        return self.release.ranges if self.release else self.exact or tuple(offsets for offsets, _ in self.parts)


@dataclass(frozen=True, slots=True)
class ClaimedWindow:
    """A window that this repair holds, with everything that is read at the claim and never again."""

    repair_id: int
    window_start: datetime
    window_end: datetime
    token: UUID
    version: int
    landings: tuple[ClaimedLanding, ...]
    certified: Digest | None
    compacted: CompactedFile | None = None  # replaced the expired text; later landings are text
    may_go: int = 0  # extras of the last certificate that may count in another window now
    by_value: bool = False  # VALUE gives the columns of all its records: those in its lines are not believed

    @property
    def landing_set(self) -> tuple[int, ...]:
        return tuple(landing.landing_id for landing in self.landings)


# Where a landing of a Kafka partition has no epochs, as leaders changed while its batch was read, all records of that
# Kafka partition are judged by their IDs alone, as if of no epoch.


def find_blind(landings: Iterable[ClaimedLanding]) -> frozenset[KafkaPartition]:
    """Return the Kafka partitions whose records are judged by their IDs alone."""
    readings = (reading for landing in landings if not landing.release for reading in landing.readings)
    return frozenset(each.offsets.source for each in readings if each.leader_epoch is None)


def list_readings(landing: ClaimedLanding, blind: Collection[KafkaPartition]) -> list[tuple[OffsetRange, int]]:
    """Return the landing's ranges, each with its leader epoch; NO_EPOCH in a `blind` Kafka partition."""
    return [
        (each.offsets, NO_EPOCH if each.leader_epoch is None or each.offsets.source in blind else each.leader_epoch)
        for each in landing.readings
    ]
