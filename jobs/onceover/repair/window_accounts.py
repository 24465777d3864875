"""A claim as the accounts that its window's lines are judged by, and their summary as the rebuilt window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onceover.lines.accounts import Accounts, DecidedContents
from onceover.lines.contract_names import name_contracts
from onceover.lines.pieces import LandedPieces, LandedRanges, cut_pieces
from onceover.lines.ranges import NO_RANGES, NumberedRanges, name_source, number_source
from onceover.lines.summary import Contents, WindowSummary
from onceover.lines.verdicts import EXTRA, STRAY
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.conflict import ContestedId
from onceover.model.contract import Contracts
from onceover.model.digest import Digest
from onceover.model.offsets import LARGEST_END, KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.rebuilt_window import DecidedContent, RebuiltRange, RebuiltWindow
from onceover.model.release import Release
from onceover.model.window import to_ms
from onceover.repair.pieces import list_releases


@dataclass(frozen=True, slots=True)
class GroupAccounts:
    """What all windows of a group share: the contracts, the IDs of each but the newest by its place among `names`, and
    ranges as in `Accounts`."""

    contracts: Contracts
    names: tuple[bytes, ...]
    earlier: NumberedRanges
    accounted: NumberedRanges
    own: NumberedRanges
    shared: NumberedRanges
    listed: NumberedRanges = NO_RANGES
    spare: NumberedRanges = NO_RANGES

    @classmethod
    def of(
        cls,
        contracts: Contracts,
        accounted: Iterable[OffsetRange],
        own: Iterable[OffsetRange],
        shared: Iterable[OffsetRange] = (),
    ) -> GroupAccounts:
        """Number the ranges."""
        names, earlier = name_contracts(contracts), NumberedRanges.of(_list_earlier(contracts, ()))
        return cls(contracts, names, earlier, _mark(accounted), _mark(own), _mark(shared))

    def share(self, offsets: Sequence[OffsetRange]) -> GroupAccounts:
        """Return these accounts, under which any of these IDs may be in two windows."""
        return replace(self, shared=_mark(offsets))

    def list_contents(self, offsets: Sequence[OffsetRange]) -> GroupAccounts:
        """Return these accounts, under which a summary lists all contents of these offsets, if a landing has them."""
        return replace(self, shared=NO_RANGES, listed=_mark(offsets))

    def spare_ids(self, offsets: Sequence[OffsetRange]) -> GroupAccounts:
        """Return these accounts, under which these offsets are in no landing, though ranges that landed cover them."""
        return replace(self, spare=_mark(offsets))


@dataclass(frozen=True, slots=True)
class WindowAccounts:
    """The accounts of one claim. In them a landing is numbered by its place among `landings`, and a release by its
    place among `releases`, the batches; `first_ids` are the first IDs, by release and piece, that it released."""

    accounts: Accounts
    landings: tuple[ClaimedLanding, ...]
    releases: tuple[int, ...]
    first_ids: Mapping[tuple[int, int], OffsetRange]

    @classmethod
    def of(cls, claim: ClaimedWindow, group: GroupAccounts, without: Sequence[OffsetRange] = ()) -> WindowAccounts:
        """Make the accounts; no landing has the offsets `without`, whatever its range covers."""
        landings = tuple(landing for landing in claim.landings if not landing.release)
        of_batch = {each.release.batch_id: each.release for each in claim.landings if each.release}
        releases = [release for _, release in sorted(of_batch.items())]
        decided = DecidedContents.of(claim.decisions)
        pieces = cut_pieces(_list_landed(landings, without), decided.ids)
        accounts = Accounts(
            to_ms(claim.window_start),
            to_ms(claim.window_end),
            pieces,
            group.names,
            len(group.contracts.versions) - 1,
            _find_contracts(group, releases),
            NumberedRanges.of((ids, n) for n, each in enumerate(releases) for ids in subtract(each.ranges, without)),
            decided,
            group.accounted,
            group.own,
            group.spare,
            group.shared,
            group.listed,
        )
        first_ids = _find_first_ids(claim.landings, pieces, releases) if releases else {}
        return cls(accounts, landings, tuple(release.batch_id for release in releases), first_ids)

    def rebuild(self, summary: WindowSummary, length: int) -> RebuiltWindow:
        """Return the rebuilt window, of whose text that many bytes were read. Its extras are all, unless they are too
        many ranges to list."""
        return RebuiltWindow(
            lines=summary.lines,
            corrupt_lines=summary.corrupt,
            misplaced_lines=summary.misplaced,
            stray_lines=summary.stray,
            spare_lines=summary.spare,
            foreign_lines=summary.foreign,
            conflicts=summary.conflicts,
            misdated=summary.misdated,
            frozen_length=length,
            ranges=tuple(self._list_ranges(summary)),
            rejected_lines=summary.rejected,
            contested=tuple(list_contested_ids(summary.contested)),
            decided=tuple(list_decided(summary.decided)),
            strays=tuple(piece for piece, _ in summary.runs.list_ranges(STRAY)),
            extra=Digest(*map(int, summary.extras)),
            extras=coalesce(piece for piece, _ in summary.runs.list_ranges(EXTRA)),
            unknown=tuple(name.decode("ascii") for name in summary.unknown),
            compacted=Digest(*map(int, summary.compacted)),
            by_value=summary.by_value,
        )

    def _list_ranges(self, summary: WindowSummary) -> Iterable[RebuiltRange]:
        """Yield each sum under a range that lies in all landings which hold its records, and in no other one."""
        counted, pieces = summary.pieces, self.accounts.pieces
        last = dict(zip(pieces.ranges.number.tolist(), pieces.ranges.end.tolist(), strict=True))
        sums = (Digest(*each) for each in counted.sums.tolist())
        rows = zip(counted.piece.tolist(), counted.release.tolist(), counted.source.tolist(), sums, strict=True)
        for piece, release, source, digest in rows:
            if release >= 0:
                yield RebuiltRange(self.first_ids[release, piece], digest, release_id=self.releases[release])
                continue
            held = OffsetRange(name_source(source), int(pieces.ranges.start[piece]), last[piece])
            owner = int(pieces.owner[piece])
            is_exact = owner >= 0 and bool(self.landings[owner].exact) and not pieces.is_decided[piece]
            yield RebuiltRange(held, digest, exact_id=self.landings[owner].landing_id if is_exact else None)


def list_contested_ids(contents: Contents) -> Iterable[ContestedId]:
    """Yield each ID once, with all its contents."""
    by_id: dict[tuple[int, int], set[tuple[str, int]]] = {}
    for source, offset, name, event_ms in _list_contents(contents):
        by_id.setdefault((source, offset), set()).add((name, event_ms))
    for (source, offset), found in by_id.items():
        yield ContestedId(name_source(source), offset, tuple(sorted(found)))


def list_decided(contents: Contents) -> Iterable[DecidedContent]:
    """Yield each content of decided IDs."""
    flags = contents.counts.tolist()
    for (source, offset, name, _), counts in zip(_list_contents(contents), flags, strict=True):
        yield DecidedContent(OffsetRange(name_source(source), offset, offset + 1), name, counts)


def _list_contents(contents: Contents) -> Iterable[tuple[int, int, str, int]]:
    columns = (each.tolist() for each in (contents.source, contents.offset, contents.content, contents.event_ms))
    for source, offset, parts, event_ms in zip(*columns, strict=True):
        yield source, offset, "".join(f"{part:08x}" for part in parts), event_ms


def _list_landed(landings: Sequence[ClaimedLanding], without: Sequence[OffsetRange]) -> LandedRanges:
    rows = [
        (n, number_source(piece.source), piece.start, piece.end, bool(landing.exact))
        for n, landing in enumerate(landings)
        for whole in landing.exact or [offsets for offsets, _ in landing.parts]
        for piece in (subtract([whole], without) if without else [whole])
    ]
    landing, source, start, end, is_exact = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 5).T)
    return LandedRanges(landing, source, start, end, is_exact.astype(bool))


def _find_contracts(group: GroupAccounts, releases: Sequence[Release]) -> NumberedRanges:
    if not releases:
        return group.earlier
    ids = [piece for release in releases for piece in release.ranges]
    count = len(group.contracts.versions)
    released = [(piece, count + release.version - 1) for release in releases for piece in release.ranges]
    return NumberedRanges.of([*_list_earlier(group.contracts, ids), *released])


def _list_earlier(contracts: Contracts, without: Sequence[OffsetRange]) -> list[tuple[OffsetRange, int]]:
    """Return the IDs of each version but the newest, with its place among the names."""
    whole = [OffsetRange(source, 0, LARGEST_END) for source in contracts.cutovers.at]
    by_version = contracts.cutovers.cut_by_version(whole)
    earlier = [version for version in by_version if version != len(contracts.versions)]
    return [(piece, version - 1) for version in earlier for piece in subtract(by_version[version], without)]


def _find_first_ids(
    landings: Iterable[ClaimedLanding], pieces: LandedPieces, releases: Sequence[Release]
) -> dict[tuple[int, int], OffsetRange]:
    numbers = {release.batch_id: n for n, release in enumerate(releases)}
    first: dict[tuple[int, int], OffsetRange] = {}
    for each in list_releases(landings, _list_ranges(pieces.ranges)):
        ids = each.ids[0]  # no bound of a piece is among them
        at = pieces.ranges.find(np.array([number_source(ids.source)]), np.array([ids.start]))
        first.setdefault((numbers[each.release.batch_id], int(at[0])), ids)
    return first


def _list_ranges(ranges: NumberedRanges) -> list[OffsetRange]:
    sources: dict[int, KafkaPartition] = {n: name_source(n) for n in np.unique(ranges.source).tolist()}
    rows = zip(ranges.source.tolist(), ranges.start.tolist(), ranges.end.tolist(), strict=True)
    return [OffsetRange(sources[source], start, end) for source, start, end in rows]


def _mark(ranges: Iterable[OffsetRange]) -> NumberedRanges:
    return NumberedRanges.of((piece, 0) for piece in coalesce(ranges))
