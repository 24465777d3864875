"""A repair, as values: what was claimed, what raw said, and whether that may be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from onceover.digest import EMPTY, Digest, total
from onceover.findings import Finding, Kind
from onceover.offsets import OffsetRange

CLAIM_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class LandingOf:
    """One landing of a claimed window as the ledger knows it: its parts' digests, and its batch's offset ranges."""

    landing_id: int
    parts: tuple[tuple[OffsetRange, Digest], ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A window that this repair holds, with all that is read at the claim and never again."""

    repair_id: int
    window_start: datetime
    window_end: datetime
    token: int
    version: int
    landings: tuple[LandingOf, ...]
    certified: Digest | None

    @property
    def landing_set(self) -> tuple[int, ...]:
        return tuple(landing.landing_id for landing in self.landings)


@dataclass(frozen=True, slots=True)
class RangeRebuilt:
    """The distinct intact records of one window that raw holds within one elementary offset range."""

    offsets: OffsetRange
    digest: Digest


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What raw says about one window: within the frozen length, deduplicated on the ID, accounted IDs only."""

    lines: int
    corrupt_lines: int
    misplaced_lines: int
    unaccounted_lines: int
    conflicts: int
    misdated: int
    planned_length: int
    ranges: tuple[RangeRebuilt, ...] = ()

    @property
    def digest(self) -> Digest:
        return total(piece.digest for piece in self.ranges)

    @property
    def duplicates(self) -> int:
        """Lines that are there more than once, of those that count."""
        intact = self.lines - self.corrupt_lines - self.misplaced_lines - self.unaccounted_lines
        return intact - self.digest.records


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether what was rebuilt may be published; `reasons` say why not, `findings` what raw showed besides."""

    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def is_proved(self) -> bool:
        return not self.reasons


def elementary_ranges(landings: Sequence[LandingOf], accounted: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The accounted offset ranges, cut at every bound of the landings' ranges: each landing is a union of pieces.

    A line's digest is summed by piece once, and every landing's digest follows by addition, however they overlap.
    """
    cuts: dict[object, set[int]] = {}
    for landing in landings:
        for offsets, _ in landing.parts:
            cuts.setdefault(offsets.source, set()).update((offsets.start, offsets.end))
    pieces: list[OffsetRange] = []
    for whole in accounted:
        inside = sorted(c for c in cuts.get(whole.source, ()) if whole.start < c < whole.end)
        bounds = [whole.start, *inside, whole.end]
        pieces += [OffsetRange(whole.source, a, b) for a, b in pairwise(bounds)]
    return tuple(pieces)


def verify(claimed: Claimed, rebuilt: Rebuilt, frozen_length: int) -> Verdict:
    """Hold raw against the ledger: every landing's count and digest must be there, nothing must count besides."""
    reasons: list[str] = []
    findings: list[Finding] = []
    if rebuilt.planned_length != frozen_length:
        reasons.append(
            f"Spark planned {rebuilt.planned_length} bytes, {frozen_length} were frozen; the file changed or is missing"
        )
    if rebuilt.conflicts:
        reasons.append(f"{rebuilt.conflicts} IDs have more than one content")
        findings.append(Finding(Kind.CONFLICT, {"ids": rebuilt.conflicts}))
    if rebuilt.misdated:
        reasons.append(f"{rebuilt.misdated} IDs have more than one event time")
        findings.append(Finding(Kind.MISDATED, {"ids": rebuilt.misdated}))
    if rebuilt.misplaced_lines:
        findings.append(Finding(Kind.MISPLACED_LINE, {"lines": rebuilt.misplaced_lines}))
    if rebuilt.corrupt_lines:
        findings.append(Finding(Kind.CORRUPT_LINE, {"lines": rebuilt.corrupt_lines}))
    covered: set[OffsetRange] = set()
    proved: list[OffsetRange] = []
    unproved: list[tuple[LandingOf, OffsetRange, Digest, Digest]] = []
    for landing in claimed.landings:
        for offsets, expected in landing.parts:
            inside = [piece for piece in rebuilt.ranges if _within(piece.offsets, offsets)]
            covered.update(piece.offsets for piece in inside)
            found = total(piece.digest for piece in inside)
            if found == expected:
                proved.append(offsets)
            else:
                unproved.append((landing, offsets, found, expected))
    for landing, offsets, found, expected in unproved:
        # A replay after compaction lands less than the first reading did; that one proves what is there.
        replayed = found.records > expected.records and any(_within(offsets, whole) for whole in proved)
        if not replayed:
            reasons.append(
                f"landing {landing.landing_id}: raw holds {found.records} of {expected.records} of {offsets}"
                + ("" if found.records != expected.records else ", with another digest")
            )
    stray = total(piece.digest for piece in rebuilt.ranges if piece.offsets not in covered)
    if stray != EMPTY:
        reasons.append(f"{stray.records} records are accounted for, but by no landing of this window")
    if claimed.certified is not None and rebuilt.digest.records < claimed.certified.records:
        reasons.append(
            f"raw holds {rebuilt.digest.records} records, the last certificate {claimed.certified.records}; less is "
            "never published"
        )
    return Verdict(tuple(reasons), tuple(findings))


def _within(piece: OffsetRange, whole: OffsetRange) -> bool:
    return piece.source == whole.source and whole.start <= piece.start and piece.end <= whole.end
