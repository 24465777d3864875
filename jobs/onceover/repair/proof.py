"""The proof before publishing: raw holds every landing, and besides only extras count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.conflict import MOST_SHOWN
from onceover.model.digest import EMPTY, Digest, sum_digests
from onceover.model.finding import Finding
from onceover.model.finding_kinds import RAW_DAMAGE, Kind
from onceover.model.json_text import to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.repair_failure import RepairFailure, lacks_lines
from onceover.model.wording import format_records, pluralize
from onceover.repair.decided import DecidedIds

MOST_REASON = 1_000  # characters of evidence


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a proof: `reasons` against publishing, if any, with their codes, and `findings` that raw showed
    besides.

    Of the `doubtful` offsets raw holds other records than landed in this window; those may be another window's.
    `suspected` offsets of the window landed more than once, and their contents were not compared.
    """

    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())
    doubtful: tuple[OffsetRange, ...] = ()
    suspected: int = 0
    failures: frozenset[RepairFailure] = frozenset()

    @property
    def is_proved(self) -> bool:
        return not (self.reasons or self.suspected)

    @property
    def waits(self) -> bool:
        """Return whether nothing but suspicions keeps the window from being published."""
        return not self.reasons and self.suspected > 0


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
            f"{self.offsets}" + (", with another digest" if self.is_as_many else "")
        )

    @property
    def is_as_many(self) -> bool:
        return self.actual.records == self.expected.records

    @property
    def lacks_nothing(self) -> bool:
        return self.actual.records > self.expected.records


def add_failed_proof(reason: str, failures: Collection[RepairFailure], verdict: Verdict | None) -> tuple[Finding, ...]:
    """Return the findings of a try that failed for `reason`: those of its verdict, if raw was read, and that raw lacks
    lines, unless one of them says so, or contents have to be compared first."""
    findings = verdict.findings if verdict else ()
    explained = any(finding.kind in RAW_DAMAGE for finding in findings) or (verdict is not None and verdict.doubtful)
    if explained or not lacks_lines(failures):
        return findings
    return *findings, Finding(Kind.FAILED_PROOF, {"reason": reason[:MOST_REASON]})


def prove(claimed: ClaimedWindow, rebuilt: RebuiltWindow, accounted: Sequence[OffsetRange] = ()) -> Verdict:
    """Compare raw with the ledger: every landing's count and digest must match, and besides only records may count that
    landed nowhere.

    Extras of the last certificate that are `accounted` now may count in another window.
    """
    reasons: list[str] = []
    failures: set[RepairFailure] = set()
    findings: list[Finding] = []

    def fail(code: RepairFailure, reason: str) -> None:
        failures.add(code)
        reasons.append(reason)

    shown = to_plain(rebuilt.contested[:MOST_SHOWN])
    contested = claimed.contested
    if rebuilt.conflicts:
        fail(RepairFailure.TWO_CONTENTS, f"{_have(rebuilt.conflicts)} more than one content")
        findings.append(Finding(Kind.CONFLICT, {"ids": rebuilt.conflicts, "contested": shown}))
    elif contested.undecided:
        undecided = f"{_have(contested.undecided)} more than one content, in this window or in another"
        fail(RepairFailure.TWO_CONTENTS, undecided)
        of_ledger = to_plain(contested.shown)
        findings.append(Finding(Kind.CONFLICT, {"ids": contested.undecided, "contested": of_ledger}))
    if rebuilt.misdated:
        fail(RepairFailure.TWO_CONTENTS, f"{_have(rebuilt.misdated)} more than one event time")
        findings.append(Finding(Kind.MISDATED, {"ids": rebuilt.misdated, "contested": shown}))
    if rebuilt.misplaced_lines:
        findings.append(Finding(Kind.MISPLACED_LINE, {"lines": rebuilt.misplaced_lines}))
    if rebuilt.foreign_lines:
        findings.append(Finding(Kind.FOREIGN_LINE, {"lines": rebuilt.foreign_lines}))
    if not rebuilt.lists_extras:
        fail(
            RepairFailure.TOO_MANY_EXTRAS,
            f"{format_records(rebuilt.extra.records)} landed nowhere, in more offset ranges than a certificate names; "
            "have ingest read them again",
        )
    if rebuilt.corrupt_lines:
        findings.append(Finding(Kind.CORRUPT_LINE, {"lines": rebuilt.corrupt_lines}))
    decided = DecidedIds(claimed, rebuilt)
    held = {key: _DigestIndex(pieces) for key, pieces in _group_by_reading(decided.drop_pieces(rebuilt.ranges))}
    unproved = _list_unproved(claimed, held, decided)
    for part in unproved:
        fail(RepairFailure.STRAY_RECORD if part.lacks_nothing else RepairFailure.LOST_LINE, str(part))
    is_other = not (rebuilt.conflicts or rebuilt.misdated)  # the window's own contents explain no difference
    more = [u.offsets for u in unproved if is_other and not u.landing.release and (u.lacks_nothing or u.is_as_many)]
    left = {key: pieces.list_left() for key, pieces in held.items()}
    more += [piece.offsets for (_, release, _), pieces in left.items() if is_other and not release for piece in pieces]
    stray = rebuilt.stray_lines + sum(piece.digest.records for pieces in left.values() for piece in pieces)
    if stray:
        fail(
            RepairFailure.STRAY_RECORD,
            f"{pluralize(stray, 'record')} accounted for, but by no landing of this window; `onceover audit` compares "
            "it with Kafka's log",
        )
    # A decision may reject records that were certified, and an extra may have landed elsewhere.
    may_go = len(claimed.decisions) + sum(map(len, intersect(claimed.extras, accounted)))
    if claimed.certified is not None and rebuilt.digest.records < claimed.certified.records - may_go:
        fail(
            RepairFailure.FEWER_RECORDS,
            f"raw holds {rebuilt.digest.records} records, the last certificate {claimed.certified.records}; fewer are "
            "never published",
        )
    compacted = claimed.compacted
    is_plain = not (rebuilt.conflicts or rebuilt.misdated or claimed.decisions)  # else some records may not count
    if reasons and compacted is not None and is_plain and rebuilt.compacted != compacted.digest:
        failures.add(RepairFailure.LOST_LINE)
        reasons.insert(
            0,
            f"the compacted file that replaced the window's text is missing or damaged: {rebuilt.compacted} of "
            f"{compacted.digest} count; put it back where `onceover explain` says",
        )
    doubtful = coalesce((*more, *rebuilt.strays))
    return Verdict(tuple(reasons), tuple(findings), doubtful, contested.suspected, frozenset(failures))


def list_unproved_parts(claimed: ClaimedWindow, rebuilt: RebuiltWindow) -> list[UnprovedPart]:
    """Return the parts of the window's landings that raw does not hold."""
    decided = DecidedIds(claimed, rebuilt)
    pieces = _group_by_reading(decided.drop_pieces(rebuilt.ranges))
    return _list_unproved(claimed, {key: _DigestIndex(each) for key, each in pieces}, decided)


# A Kafka partition, the release from quarantine, and the landing with exact IDs, if any.
_Source = tuple[KafkaPartition, int | None, int | None]


class _DigestIndex:
    """One source's rebuilt ranges with running sums: any landing's digest is one subtraction."""

    def __init__(self, ranges: Iterable[RebuiltRange]) -> None:
        self._pieces = ordered = sorted(ranges, key=lambda piece: piece.offsets.start)
        self._starts = [piece.offsets.start for piece in ordered]
        self._ends = [piece.offsets.end for piece in ordered]
        self._sums = list(accumulate((piece.digest for piece in ordered), initial=EMPTY))
        self._taken = [0] * (len(ordered) + 1)  # by piece, how many more takes hold it than the piece before

    def take(self, whole: OffsetRange) -> Digest:
        """Return the digest of the pieces within, and mark them as taken."""
        first, last = bisect_left(self._starts, whole.start), bisect_right(self._ends, whole.end)
        if first >= last:
            return EMPTY
        self._taken[first] += 1
        self._taken[last] -= 1
        return self._sums[last] - self._sums[first]

    def read(self, whole: OffsetRange) -> Digest:
        """Return the digest of the pieces within, without marking them."""
        first, last = bisect_left(self._starts, whole.start), bisect_right(self._ends, whole.end)
        return self._sums[last] - self._sums[first] if first < last else EMPTY

    def list_left(self) -> list[RebuiltRange]:
        """Return the pieces that were never taken."""
        return [piece for piece, taken in zip(self._pieces, accumulate(self._taken), strict=False) if not taken]


class _Cover:
    """Offset ranges joined where they touch, to ask whether one of them holds another range."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        self._starts: dict[KafkaPartition, list[int]] = {}
        self._ends: dict[KafkaPartition, list[int]] = {}
        for whole in coalesce(ranges):
            self._starts.setdefault(whole.source, []).append(whole.start)
            self._ends.setdefault(whole.source, []).append(whole.end)

    def contains(self, part: OffsetRange) -> bool:
        at = bisect_right(self._starts.get(part.source, []), part.start)
        return at > 0 and self._ends[part.source][at - 1] >= part.end


def _list_unproved(
    claimed: ClaimedWindow, held: Mapping[_Source, _DigestIndex], decided: DecidedIds
) -> list[UnprovedPart]:
    """Return the parts of landings that raw does not hold, and mark in `held` the pieces of all landings as taken."""
    proved: list[OffsetRange] = []
    unproved: list[UnprovedPart] = []
    for landing in claimed.landings:
        for offsets, expected in landing.parts:
            own = landing.exact and [r for r in landing.exact if r.source == offsets.source]
            actual = EMPTY
            if index := held.get((offsets.source, landing.release_id, None)):
                actual = sum_digests(map(index.take, own or (offsets,)))
            if own and (alone := held.get((offsets.source, None, landing.landing_id))):
                actual = actual + alone.take(offsets)
            # A ledger rebuilt without a line of the first reading has one contract for an ID's release and replays.
            if actual != expected and not landing.release:
                released = [index for (source, batch, _), index in held.items() if batch and source == offsets.source]
                actual = _add_released(actual, expected, released, own or (offsets,))
            ids = [r for r in landing.release.ranges if r.source == offsets.source] if landing.release else own
            if actual == expected or decided.explain(ids or (offsets,), actual, expected):
                proved += [] if landing.release else own or [offsets]
            else:
                unproved.append(UnprovedPart(landing, offsets, actual, expected))
    covered = _Cover(proved)
    return [
        part
        for part in unproved
        # A replay after Kafka's compaction lands less than the first readings did, whose landings prove the records.
        if not (not part.landing.release and part.lacks_nothing and covered.contains(part.offsets))
    ]


def _add_released(
    actual: Digest, expected: Digest, released: Iterable[_DigestIndex], ranges: Sequence[OffsetRange]
) -> Digest:
    """Return the expected digest if the released records of these ranges make it up, else the actual one."""
    whole = sum_digests((actual, *(index.read(r) for index in released for r in ranges)))
    return expected if whole == expected else actual


def _group_by_reading(ranges: Iterable[RebuiltRange]) -> Iterable[tuple[_Source, list[RebuiltRange]]]:
    actual: dict[_Source, list[RebuiltRange]] = {}
    for piece in ranges:
        actual.setdefault((piece.offsets.source, piece.release_id, piece.exact_id), []).append(piece)
    return actual.items()


def _have(ids: int) -> str:
    return f"{pluralize(ids, 'ID')} {'has' if ids == 1 else 'have'}"
