"""A claim as the accounts that its window's lines are judged by, and their summary as the rebuilt window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.contract_names import name_contracts
from onceover.lines.pieces import LandedPieces, LandedRanges, cut_pieces
from onceover.lines.ranges import NO_RANGES, EpochRanges, NumberedRanges, name_source, number_source
from onceover.lines.summary import WindowSummary
from onceover.lines.verdicts import CLASHING, EXTRA, STRAY
from onceover.model.claim import ClaimedLanding, ClaimedWindow, find_blind, list_readings
from onceover.model.contract import Contracts
from onceover.model.digest import Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.release import Release
from onceover.model.window import to_ms


@dataclass(frozen=True, slots=True)
class GroupAccounts:
    """What all windows of a group share: the contracts, the IDs of each but the newest by its place among `names`, and
    ranges as in `Accounts`."""

    contracts: Contracts
    names: tuple[bytes, ...]
    earlier: NumberedRanges
    accounted: NumberedRanges
    own: NumberedRanges
    beside: EpochRanges = field(default_factory=EpochRanges)
    spare: NumberedRanges = NO_RANGES

    @classmethod
    def of(cls, contracts: Contracts, accounted: Iterable[OffsetRange], own: Iterable[OffsetRange]) -> GroupAccounts:
        """Number the ranges."""
        names, earlier = name_contracts(contracts), NumberedRanges.of(_list_earlier(contracts, ()))
        return cls(contracts, names, earlier, _mark(accounted), _mark(own))

    def look_again(self, beside: Iterable[EpochSpan], spare: Iterable[OffsetRange]) -> GroupAccounts:
        """Return these accounts, under which the readings `beside` landed nowhere, though their IDs did under other
        leader epochs, and no landing holds the `spare` IDs, though ranges that landed cover them."""
        of_epoch: dict[int, list[OffsetRange]] = {}
        for each in beside:
            of_epoch.setdefault(NO_EPOCH if each.leader_epoch is None else each.leader_epoch, []).append(each.offsets)
        ranges = EpochRanges({epoch: _mark(offsets) for epoch, offsets in of_epoch.items()})
        return replace(self, beside=ranges, spare=_mark(spare))


@dataclass(frozen=True, slots=True)
class WindowAccounts:
    """The accounts of one claim. In them a landing is numbered by its place among `landings`, and a release by its
    place among `releases`, the batches; `first_ids` are the first offsets that it released, by release, Kafka partition
    and piece."""

    accounts: Accounts
    landings: tuple[ClaimedLanding, ...]
    releases: tuple[int, ...]
    first_ids: Mapping[tuple[int, int, int], int]

    @classmethod
    def of(cls, claim: ClaimedWindow, group: GroupAccounts, without: Sequence[OffsetRange] = ()) -> WindowAccounts:
        """Make the accounts; no landing has the offsets `without`, whatever its range covers."""
        landings = tuple(landing for landing in claim.landings if not landing.release)
        of_batch = {each.release.batch_id: each.release for each in claim.landings if each.release}
        releases = [release for _, release in sorted(of_batch.items())]
        blind = find_blind(landings)
        pieces = cut_pieces(_list_landed(landings, blind, without))
        accounts = Accounts(
            to_ms(claim.window_start),
            to_ms(claim.window_end),
            pieces,
            group.names,
            len(group.contracts.versions) - 1,
            _find_contracts(group, releases, group.contracts.find_restated_version(claim.window_start)),
            NumberedRanges.of((ids, n) for n, each in enumerate(releases) for ids in subtract(each.ranges, without)),
            group.accounted,
            group.own,
            group.beside,
            group.spare,
            np.array(sorted(map(number_source, blind)), np.int64),
        )
        first_ids = _find_first_ids(pieces, releases)
        return cls(accounts, landings, tuple(release.batch_id for release in releases), first_ids)

    def rebuild(self, summary: WindowSummary, length: int) -> RebuiltWindow:
        """Return the rebuilt window, of whose text that many bytes were read."""
        return RebuiltWindow(
            digest=summary.digest,
            lines=summary.lines,
            frozen_length=length,
            ranges=tuple(self._list_ranges(summary)),
            corrupt_lines=summary.corrupt,
            misplaced_lines=summary.misplaced,
            stray_lines=summary.stray,
            spare_lines=summary.spare,
            foreign_lines=summary.foreign,
            extras=tuple(summary.runs.list_spans(EXTRA)),
            strays=tuple(summary.runs.list_spans(STRAY)),
            clashing=tuple(summary.runs.list_spans(CLASHING)),
            lists_all=summary.runs.is_whole,
            repeated=summary.repeated,
            unknown=tuple(name.decode("ascii") for name in summary.unknown),
            compacted=Digest(*map(int, summary.compacted)),
            by_value=summary.by_value,
        )

    def _list_ranges(self, summary: WindowSummary) -> Iterable[RebuiltRange]:
        """Yield each sum under a range that lies in all landings which hold its records, and in no other one."""
        counted, pieces = summary.pieces, self.accounts.pieces
        last: dict[int, int] = {}
        for ranges in pieces.ranges.of_epoch.values():
            last |= zip(ranges.number.tolist(), ranges.end.tolist(), strict=True)
        sums = (Digest(*each) for each in counted.sums.tolist())
        rows = zip(counted.piece.tolist(), counted.release.tolist(), counted.source.tolist(), sums, strict=True)
        for piece, release, source, digest in rows:
            if release >= 0:
                first = self.first_ids[release, source, piece]
                first_id = OffsetRange(name_source(source), first, first + 1)
                yield RebuiltRange(first_id, digest, release_id=self.releases[release])
                continue
            held = OffsetRange(name_source(source), int(pieces.start[piece]), last[piece])
            owner = int(pieces.owner[piece])
            is_exact = owner >= 0 and bool(self.landings[owner].exact)
            yield RebuiltRange(
                held,
                digest,
                exact_id=self.landings[owner].landing_id if is_exact else None,
                leader_epoch=int(pieces.epoch[piece]),
            )


def _list_landed(
    landings: Sequence[ClaimedLanding], blind: Collection[KafkaPartition], without: Sequence[OffsetRange]
) -> LandedRanges:
    rows = [
        (n, number_source(piece.source), piece.start, piece.end, epoch, bool(landing.exact))
        for n, landing in enumerate(landings)
        for whole, epoch in list_readings(landing, blind)
        for piece in (subtract([whole], without) if without else [whole])
    ]
    landing, source, start, end, epoch, is_exact = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 6).T)
    return LandedRanges(landing, source, start, end, epoch, is_exact.astype(bool))


def _find_contracts(group: GroupAccounts, releases: Sequence[Release], restated: int) -> NumberedRanges:
    """Return the contract of each ID of a window that was restated under that version, or 1."""
    if not releases and restated == 1:
        return group.earlier
    ids = [piece for release in releases for piece in release.ranges]
    count = len(group.contracts.versions)
    released = [(piece, count + max(release.version, restated) - 1) for release in releases for piece in release.ranges]
    return NumberedRanges.of([*_list_earlier(group.contracts, ids, restated), *released])


def _list_earlier(
    contracts: Contracts, without: Sequence[OffsetRange], restated: int = 1
) -> list[tuple[OffsetRange, int]]:
    """Return the IDs of each version but the newest, with its place among the names."""
    whole = [OffsetRange(source, 0, LARGEST_END) for source in contracts.cutovers.at]
    by_version = contracts.cutovers.cut_by_version(whole)
    versions = ((max(version, restated), pieces) for version, pieces in by_version.items())
    earlier = [each for each in versions if each[0] != len(contracts.versions)]
    return [(piece, version - 1) for version, pieces in earlier for piece in subtract(pieces, without)]


def _find_first_ids(pieces: LandedPieces, releases: Sequence[Release]) -> dict[tuple[int, int, int], int]:
    """Return the first released offset by release, Kafka partition and piece of any epoch, -1 for none. One that read
    released IDs again under the same contract, after a rebuild of the ledger, is a union of pieces."""
    if not releases:
        return {}
    bounds: dict[int, set[int]] = {}
    for source, *of_piece in zip(pieces.source.tolist(), pieces.start.tolist(), pieces.end.tolist(), strict=True):
        bounds.setdefault(source, set()).update(of_piece)
    ordered = {source: sorted(cuts) for source, cuts in bounds.items()}
    first: dict[tuple[int, int, int], int] = {}
    for number, release in enumerate(releases):
        at: list[tuple[int, int]] = []
        for ids in sorted(release.ranges):
            source = number_source(ids.source)
            cuts = ordered.get(source, [])
            inside = cuts[bisect_right(cuts, ids.start) : bisect_left(cuts, ids.end)]
            at += [(source, offset) for offset in (ids.start, *inside)]
        sources, offsets = np.array(at, np.int64).reshape(-1, 2).T
        of_epochs = (of_epoch.find(sources, offsets).tolist() for of_epoch in pieces.ranges.of_epoch.values())
        for found in ([-1] * len(at), *of_epochs):
            for (source, offset), piece in zip(at, found, strict=True):
                first.setdefault((number, source, piece), offset)
    return first


def _mark(ranges: Iterable[OffsetRange]) -> NumberedRanges:
    return NumberedRanges.of((piece, 0) for piece in coalesce(ranges))
