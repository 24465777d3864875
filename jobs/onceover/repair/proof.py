"""The proof before publishing: raw holds every landing, and besides only extras count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from onceover.model.claim import ClaimedLanding, ClaimedWindow, find_blind, list_readings
from onceover.model.digest import EMPTY, Digest, sum_digests
from onceover.model.finding import Finding
from onceover.model.finding_kinds import RAW_DAMAGE, Kind
from onceover.model.offsets import KafkaPartition, OffsetRange, OffsetSet, coalesce
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.repair_failure import RepairFailure, shows_damage
from onceover.model.wording import pluralize

MAX_REASON: Final = 1_000  # characters of evidence
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a proof: `reasons` against publishing, if any, with their codes, and `findings` that raw showed
    besides."""

    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())
    failures: frozenset[RepairFailure] = frozenset()

    @property
    def is_proved(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class UnprovedPart:
    """One Kafka partition of a landing whose records raw does not hold as they landed."""

    landing: ClaimedLanding
    offsets: OffsetRange
    actual: Digest
    expected: Digest

    def __str__(self) -> str:
        return (
            f"landing {self.landing.landing_id}: raw holds {self.actual.records} of {self.expected.records} of "
            f"{self.offsets}" + (", with another digest" if self.actual.records == self.expected.records else "")
        )

    @property
    def lacks_nothing(self) -> bool:
        return self.actual.records > self.expected.records


def add_failed_proof(reason: str, failures: Collection[RepairFailure], verdict: Verdict | None) -> tuple[Finding, ...]:
    """Return the findings of a try that failed for `reason`: those of its verdict, if raw was read, and that raw does
    not prove the window, unless one of them says so."""
    findings = verdict.findings if verdict else ()
    if any(finding.kind in RAW_DAMAGE for finding in findings) or not shows_damage(failures):
        return findings
    return *findings, Finding(Kind.FAILED_PROOF, {"reason": reason[:MAX_REASON]})


def prove(claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> Verdict:
    """Compare raw with the ledger: every landing's count and digest must match, and besides only records may count that
    landed nowhere."""
    reasons: list[str] = []
    failures: set[RepairFailure] = set()
    findings: list[Finding] = []

    def fail(code: RepairFailure, reason: str) -> None:
        failures.add(code)
        reasons.append(reason)

    if rebuilt.clashing:
        ids = pluralize(sum(len(each.offsets) for each in rebuilt.clashing), "ID")
        named = ", ".join(str(each.offsets) for each in rebuilt.clashing[:_MAX_NAMED])
        fail(RepairFailure.TWO_CONTENTS, f"{ids} with two contents under one leader epoch: {named}")
    if rebuilt.misplaced_lines or rebuilt.foreign_lines:
        stray = {"misplaced": rebuilt.misplaced_lines, "foreign": rebuilt.foreign_lines}
        findings.append(Finding(Kind.STRAY_LINE, stray))
    if rebuilt.corrupt_lines:
        findings.append(Finding(Kind.CORRUPT_LINE, {"lines": rebuilt.corrupt_lines}))
    if not rebuilt.lists_all:
        fail(
            RepairFailure.TOO_MANY_EXTRAS,
            "records that landed nowhere, or elsewhere, are in more offset ranges than a certificate names; repair "
            "this window alone, which names more, or have ingest read them again",
        )
    for part in list_unproved_parts(claimed, rebuilt):
        fail(RepairFailure.STRAY_RECORD if part.lacks_nothing else RepairFailure.LOST_LINE, str(part))
    if claimed.certified is not None and rebuilt.digest.records < claimed.certified.records - claimed.may_go:
        fail(
            RepairFailure.FEWER_RECORDS,
            f"raw holds {rebuilt.digest.records} records, the last certificate {claimed.certified.records}; fewer are "
            "never published",
        )
    compacted = claimed.compacted
    if reasons and compacted is not None and not rebuilt.clashing and rebuilt.compacted != compacted.digest:
        failures.add(RepairFailure.LOST_LINE)
        reasons.insert(
            0,
            f"the compacted file that replaced the window's text is missing or damaged: {rebuilt.compacted} of "
            f"{compacted.digest} count; put it back where `onceover explain` says",
        )
    return Verdict(tuple(reasons), tuple(findings), frozenset(failures))


def leave_out_strays(verdict: Verdict) -> Verdict:
    """Return the verdict without the finding of stray lines, whose remedy takes them out."""
    return replace(verdict, findings=tuple(each for each in verdict.findings if each.kind is not Kind.STRAY_LINE))


def list_doubtful(claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> tuple[OffsetRange, ...]:
    """Return the offsets of which raw holds other records than landed in this window; those may be spare."""
    unproved = (part for part in list_unproved_parts(claimed, rebuilt) if not part.landing.release)
    return coalesce(part.offsets for part in unproved if part.actual.records >= part.expected.records)


# A Kafka partition with its leader epoch; or with a release from quarantine, or the landing with exact IDs.
_Source = tuple[KafkaPartition, int | None, int | None, int | None]


def list_unproved_parts(claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> list[UnprovedPart]:
    """Return the parts of the window's landings that raw does not hold."""
    held = _index(rebuilt.ranges)
    blind = find_blind(claimed.landings)
    proved: dict[int, list[OffsetRange]] = {}
    unproved: list[tuple[UnprovedPart, list[tuple[OffsetRange, int]]]] = []
    for landing in claimed.landings:
        readings: dict[KafkaPartition, list[tuple[OffsetRange, int]]] = {}
        for piece, epoch in list_readings(landing, blind):
            readings.setdefault(piece.source, []).append((piece, epoch))
        for offsets, expected in landing.parts:
            source, own = offsets.source, readings[offsets.source]
            if landing.release:
                of_release = held.get((source, None, landing.release.batch_id, None))
                actual = of_release.read(offsets) if of_release else EMPTY
            else:
                actual = sum_digests(
                    index.read(piece) for piece, epoch in own if (index := held.get((source, epoch, None, None)))
                )
                for epoch in {epoch for _, epoch in own}:
                    if alone := held.get((source, epoch, None, landing.landing_id)):
                        actual = actual + alone.read(offsets)
            # A ledger rebuilt without a line of the first reading has one contract for an ID's release and replays.
            if actual != expected and not landing.release:
                released = [index for (at, _, batch, _), index in held.items() if batch and at == source]
                actual = _add_released(actual, expected, released, [piece for piece, _ in own])
            if actual != expected:
                unproved.append((UnprovedPart(landing, offsets, actual, expected), own))
            elif not landing.release:
                for piece, epoch in own:
                    proved.setdefault(epoch, []).append(piece)
    covered = {epoch: OffsetSet(ranges) for epoch, ranges in proved.items()}
    return [
        part
        for part, own in unproved
        # A replay after Kafka's compaction lands less than the first readings did, whose landings prove the records.
        if part.landing.release
        or not part.lacks_nothing
        or not all(
            epoch in covered and covered[epoch].holds(piece.source, piece.start, piece.end) for piece, epoch in own
        )
    ]


class _DigestIndex:
    """One source's rebuilt ranges with running sums: any landing's digest is one subtraction."""

    def __init__(self, ranges: Iterable[RebuiltRange]) -> None:
        ordered = sorted(ranges, key=lambda piece: piece.offsets.start)
        self._starts = [piece.offsets.start for piece in ordered]
        self._ends = [piece.offsets.end for piece in ordered]
        self._sums = list(accumulate((piece.digest for piece in ordered), initial=EMPTY))

    def read(self, whole: OffsetRange) -> Digest:
        """Return the digest of the pieces within."""
        first, last = bisect_left(self._starts, whole.start), bisect_right(self._ends, whole.end)
        return self._sums[last] - self._sums[first] if first < last else EMPTY


def _add_released(
    actual: Digest, expected: Digest, released: Iterable[_DigestIndex], ranges: Sequence[OffsetRange]
) -> Digest:
    """Return the expected digest if the released records of these ranges make it up, else the actual one."""
    whole = sum_digests((actual, *(index.read(r) for index in released for r in ranges)))
    return expected if whole == expected else actual


def _index(ranges: Iterable[RebuiltRange]) -> Mapping[_Source, _DigestIndex]:
    by_source: dict[_Source, list[RebuiltRange]] = {}
    for piece in ranges:
        epoch = None if piece.release_id else piece.leader_epoch
        by_source.setdefault((piece.offsets.source, epoch, piece.release_id, piece.exact_id), []).append(piece)
    return {key: _DigestIndex(pieces) for key, pieces in by_source.items()}
