"""A repair as values: the claimed windows, and the result of reading raw again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.model.digest import EMPTY, Digest, sum_digests
from onceover.model.line import encode_id
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import CompactedFile
from onceover.model.window import from_ms

CLAIM_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """One batch that landed records out of quarantine: `ranges` hold exactly its IDs, which have that `version` of the
    contract and count by this release alone. Every other landing of their offsets was to quarantine."""

    batch_id: int
    version: int
    ranges: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class ClaimedLanding:
    """One landing of a claimed window from the ledger: the digest of each part with its batch's offset range; for a
    `release` the range runs from its first to its last ID in the Kafka partition."""

    landing_id: int
    parts: tuple[tuple[OffsetRange, Digest], ...]
    release: Release | None = None

    @property
    def release_id(self) -> int | None:
        return self.release.batch_id if self.release else None


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


@dataclass(frozen=True, slots=True)
class ClaimedWindow:
    """A window that this repair holds, with everything that is read at the claim and never again."""

    repair_id: int
    window_start: datetime
    window_end: datetime
    token: int
    version: int
    landings: tuple[ClaimedLanding, ...]
    certified: Digest | None
    decisions: tuple[Decision, ...] = ()
    compacted: CompactedFile | None = None  # replaced the expired text; later landings are text

    @property
    def landing_set(self) -> tuple[int, ...]:
        return tuple(landing.landing_id for landing in self.landings)


@dataclass(frozen=True, slots=True)
class RebuiltRange:
    """The distinct intact records of one window that raw holds within one elementary offset range, or of one release in
    one Kafka partition."""

    offsets: OffsetRange
    digest: Digest
    release_id: int | None = None


@dataclass(frozen=True, slots=True)
class RebuiltWindow:
    """One window as raw has it: within the frozen length, deduplicated on the ID, accounted IDs only.

    Stray lines have accounted IDs that no landing of any claimed window holds.
    """

    lines: int
    corrupt_lines: int
    misplaced_lines: int
    unaccounted_lines: int
    stray_lines: int
    conflicts: int
    misdated: int
    planned_length: int
    ranges: tuple[RebuiltRange, ...] = ()
    rejected_lines: int = 0  # of contents that a decision rejected
    suspects: tuple[Suspect, ...] = ()  # only the first ones, as evidence
    compacted: Digest = EMPTY  # the part read from the Parquet file

    @property
    def digest(self) -> Digest:
        return sum_digests(piece.digest for piece in self.ranges)

    @property
    def duplicates(self) -> int:
        """Return the number of lines that repeat a counted record."""
        counting = self.lines - self.corrupt_lines - self.misplaced_lines - self.unaccounted_lines - self.stray_lines
        return counting - self.rejected_lines - self.digest.records
