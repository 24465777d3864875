"""A window rebuilt: the result of reading its raw again."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.conflict import ContestedId
from onceover.model.digest import EMPTY, Digest, read_content_hash, sum_digests
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class RebuiltRange:
    """The distinct intact records of one window that raw holds within one elementary offset range, or of one release in
    one Kafka partition, or of the exact IDs in one Kafka partition that only the landing `exact_id` holds."""

    offsets: OffsetRange
    digest: Digest
    release_id: int | None = None
    exact_id: int | None = None


@dataclass(frozen=True, slots=True)
class DecidedContent:
    """One content, of the window, of an ID that a person decided about; `counts` if it was kept."""

    offsets: OffsetRange
    hash: str
    counts: bool

    @property
    def digest(self) -> Digest:
        return read_content_hash(self.hash)


@dataclass(frozen=True, slots=True)
class RebuiltWindow:
    """One window as raw has it: `frozen_length` bytes of text, deduplicated on the ID.

    `ranges` are of records that landed in it, `extras` the IDs of further records, which landed nowhere, and `extra`
    counts them. Stray lines landed, but not in this window; spare ones are in a range that landed, and in no landing;
    foreign ones are of a log that the pipeline never read. `unknown` contracts are named by extras.
    """

    lines: int
    corrupt_lines: int
    misplaced_lines: int
    stray_lines: int
    conflicts: int
    misdated: int
    frozen_length: int
    ranges: tuple[RebuiltRange, ...] = ()
    rejected_lines: int = 0  # of contents that a decision rejected
    contested: tuple[ContestedId, ...] = ()  # a bounded number
    decided: tuple[DecidedContent, ...] = ()
    strays: tuple[OffsetRange, ...] = ()  # a bounded number of the stray lines' offsets
    compacted: Digest = EMPTY  # the part read from the compacted file
    by_value: int = 0  # records whose VALUE was evaluated again; the others count by the columns in their lines
    spare_lines: int = 0
    foreign_lines: int = 0
    extra: Digest = EMPTY
    extras: tuple[OffsetRange, ...] = ()  # a bounded number
    unknown: tuple[str, ...] = ()

    @property
    def digest(self) -> Digest:
        return sum_digests((self.extra, *(piece.digest for piece in self.ranges)))

    @property
    def duplicates(self) -> int:
        """Return the number of lines that repeat a counted record."""
        other = self.corrupt_lines + self.misplaced_lines + self.stray_lines + self.spare_lines + self.foreign_lines
        return self.lines - other - self.rejected_lines - self.digest.records

    @property
    def lists_extras(self) -> bool:
        """Return whether `extras` are all."""
        return sum(map(len, self.extras)) == self.extra.records
