"""A window rebuilt: the result of reading its raw again."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class RebuiltRange:
    """The distinct intact records of one window that raw holds within one elementary offset range, read under one
    leader epoch; or of one release in one Kafka partition; or of the exact IDs in one Kafka partition that only the
    landing `exact_id` holds."""

    offsets: OffsetRange
    digest: Digest
    release_id: int | None = None
    exact_id: int | None = None
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class RebuiltWindow:
    """One window as raw has it: `frozen_length` bytes of text, and the `digest` of its records, each once.

    `ranges` are of records that landed in it, `extras` the readings of further ones, which landed nowhere. Stray lines
    landed, but not in this window; spare ones are in a range that landed, and in no landing; foreign ones are of a log
    that the pipeline never read. `clashing` readings have several contents. Extras, strays and clashing readings are
    all, unless they are too many to list. `unknown` contracts are named by extras.
    """

    digest: Digest
    lines: int
    frozen_length: int
    ranges: tuple[RebuiltRange, ...] = ()
    corrupt_lines: int = 0
    misplaced_lines: int = 0
    stray_lines: int = 0
    spare_lines: int = 0
    foreign_lines: int = 0
    extras: tuple[EpochSpan, ...] = ()
    strays: tuple[EpochSpan, ...] = ()
    clashing: tuple[EpochSpan, ...] = ()
    lists_all: bool = True
    repeated: int = 0  # readings with the record of another leader epoch
    unknown: tuple[str, ...] = ()
    compacted: Digest = EMPTY  # the part read from the compacted file
    by_value: int = 0  # records whose VALUE was evaluated again; the others count by the columns in their lines

    @property
    def duplicates(self) -> int:
        """Return the number of lines that repeat a counted record."""
        other = self.corrupt_lines + self.misplaced_lines + self.stray_lines + self.spare_lines + self.foreign_lines
        return self.lines - other - self.digest.records
