"""Whether what raw said may be published: every landing must be there, nothing must count besides."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

from onceover.model.claim import ClaimedLanding, ClaimedWindow, RebuiltRange, RebuiltWindow
from onceover.model.digest import EMPTY, Digest
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.json_text import to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether what was rebuilt may be published; `reasons` say why not, `findings` what raw showed besides."""

    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def is_proved(self) -> bool:
        return not self.reasons


def elementary_ranges(landings: Iterable[ClaimedLanding]) -> tuple[OffsetRange, ...]:
    """The landings' offset ranges cut at each other's bounds: disjoint, in order, each landing a union of some; those
    of releases left out.

    A record's digest is summed by piece once, and every landing's digest follows by addition, however they overlap.
    """
    depths: dict[KafkaPartition, Counter[int]] = {}  # by how many landings it gets deeper at each bound
    for landing in landings:
        for offsets, _ in () if landing.release else landing.parts:
            at = depths.setdefault(offsets.source, Counter())
            at[offsets.start] += 1
            at[offsets.end] -= 1
    pieces: list[OffsetRange] = []
    for source, at in sorted(depths.items()):
        depth = 0
        for start, end in pairwise(sorted(at)):
            depth += at[start]
            if depth:
                pieces.append(OffsetRange(source, start, end))
    return tuple(pieces)


def prove(claimed: ClaimedWindow, rebuilt: RebuiltWindow, frozen_length: int) -> Verdict:
    """Hold raw against the ledger: every landing's count and digest must be there, nothing must count besides."""
    reasons: list[str] = []
    findings: list[Finding] = []
    if rebuilt.planned_length != frozen_length:
        reasons.append(
            f"Spark planned {rebuilt.planned_length} bytes, {frozen_length} were frozen; the file changed or is missing"
        )
    suspects = to_plain(rebuilt.suspects)
    if rebuilt.conflicts:
        reasons.append(f"{rebuilt.conflicts} IDs have more than one content")
        findings.append(Finding(Kind.CONFLICT, {"ids": rebuilt.conflicts, "suspects": suspects}))
    if rebuilt.misdated:
        reasons.append(f"{rebuilt.misdated} IDs have more than one event time")
        findings.append(Finding(Kind.MISDATED, {"ids": rebuilt.misdated, "suspects": suspects}))
    if rebuilt.misplaced_lines:
        findings.append(Finding(Kind.MISPLACED_LINE, {"lines": rebuilt.misplaced_lines}))
    if rebuilt.corrupt_lines:
        findings.append(Finding(Kind.CORRUPT_LINE, {"lines": rebuilt.corrupt_lines}))
    held = {key: _Held(pieces) for key, pieces in _by_reading(rebuilt.ranges)}
    proved: list[OffsetRange] = []
    unproved: list[tuple[ClaimedLanding, OffsetRange, Digest, Digest]] = []
    for landing in claimed.landings:
        for offsets, expected in landing.parts:
            key = (offsets.source, landing.release_id)
            found = held[key].take(offsets) if key in held else EMPTY
            if found == expected:
                proved += [] if landing.release else [offsets]
            else:
                unproved.append((landing, offsets, found, expected))
    covered = _Cover(proved)
    for landing, offsets, found, expected in unproved:
        # A replay after compaction lands less than the first reading did; that one proves what is there.
        replayed = not landing.release and found.records > expected.records and covered.has(offsets)
        # Of a landing that read a content which was decided against, only the number is left to compare.
        decided = found.records == expected.records and any(
            d.source == offsets.source and offsets.start <= d.offset < offsets.end for d in claimed.decisions
        )
        if not replayed and not decided:
            reasons.append(
                f"landing {landing.landing_id}: raw holds {found.records} of {expected.records} of {offsets}"
                + ("" if found.records != expected.records else ", with another digest")
            )
    stray = rebuilt.stray_lines + sum(pieces.left() for pieces in held.values())
    if stray:
        reasons.append(f"{stray} records are accounted for, but by no landing of this window")
    if claimed.certified is not None and rebuilt.digest.records < claimed.certified.records:
        reasons.append(
            f"raw holds {rebuilt.digest.records} records, the last certificate {claimed.certified.records}; less is "
            "never published"
        )
    parquet = claimed.compacted
    is_plain = not (rebuilt.conflicts or rebuilt.misdated or claimed.decisions)  # of others a part may not count
    if reasons and parquet is not None and is_plain and rebuilt.compacted != parquet.digest:
        reasons.insert(
            0,
            f"its Parquet file, for which its text was let go, is missing or damaged: {rebuilt.compacted} of "
            f"{parquet.digest} count; put it back where `onceover explain` says",
        )
    return Verdict(tuple(reasons), tuple(findings))


_Reading = tuple[KafkaPartition, int | None]  # what was read of a Kafka partition, or what a release took from there


class _Held:
    """What was rebuilt of one of these, with running sums: any landing's digest is one subtraction."""

    def __init__(self, ranges: Iterable[RebuiltRange]) -> None:
        ordered = sorted(ranges, key=lambda piece: piece.offsets.start)
        self._starts = [piece.offsets.start for piece in ordered]
        self._ends = [piece.offsets.end for piece in ordered]
        self._records = [piece.digest.records for piece in ordered]
        self._sums = list(accumulate((piece.digest for piece in ordered), initial=EMPTY))
        self._taken = [0] * (len(ordered) + 1)  # by how much `take` counts more at each piece than at the one before

    def take(self, whole: OffsetRange) -> Digest:
        """The digest of what lies within; those pieces are spoken for."""
        first, last = bisect_left(self._starts, whole.start), bisect_right(self._ends, whole.end)
        if first >= last:
            return EMPTY
        self._taken[first] += 1
        self._taken[last] -= 1
        return self._sums[last] - self._sums[first]

    def left(self) -> int:
        """Records of pieces that nobody took."""
        return sum(n for n, taken in zip(self._records, accumulate(self._taken), strict=False) if not taken)


class _Cover:
    """Whether an offset range lies within one of many."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        self._starts: dict[KafkaPartition, list[int]] = {}
        self._reach: dict[KafkaPartition, list[int]] = {}
        for source, of_it in groupby(sorted(ranges), key=lambda r: r.source):
            ordered = list(of_it)
            self._starts[source] = [r.start for r in ordered]
            self._reach[source] = list(accumulate((r.end for r in ordered), max))

    def has(self, part: OffsetRange) -> bool:
        at = bisect_right(self._starts.get(part.source, []), part.start)
        return at > 0 and self._reach[part.source][at - 1] >= part.end


def _by_reading(ranges: Iterable[RebuiltRange]) -> Iterable[tuple[_Reading, list[RebuiltRange]]]:
    found: dict[_Reading, list[RebuiltRange]] = {}
    for piece in ranges:
        found.setdefault((piece.offsets.source, piece.release_id), []).append(piece)
    return found.items()
