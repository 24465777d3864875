"""Lines that no landing accounts for, from the summaries of windows: what is pending, and what only raw holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from onceover.lines.ranges import name_source
from onceover.lines.runs import LAST_ID
from onceover.lines.summary import WindowSummary
from onceover.lines.verdicts import BEYOND_END, ORPHAN, PENDING
from onceover.model.batch import LandingPart
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect, subtract
from onceover.model.unlanded import Unlanded


def sort_runs(summary: WindowSummary) -> Unlanded:
    """Return the window's unlanded lines, by a summary whose accounts know what Kafka's log holds."""
    orphans = summary.runs.list_ranges(ORPHAN)
    digests: dict[KafkaPartition, Digest] = {}
    for piece, digest in orphans:
        digests[piece.source] = digests.get(piece.source, EMPTY) + digest
    return Unlanded(
        pending=coalesce(piece for piece, _ in summary.runs.list_ranges(PENDING)),
        orphans=coalesce(piece for piece, _ in orphans),
        parts=tuple(LandingPart(source, digest) for source, digest in sorted(digests.items())),
        conflicts=summary.unlanded_conflicts,
        beyond=coalesce(piece for piece, _ in summary.runs.list_ranges(BEYOND_END)),
        foreign=summary.foreign,
        unknown=tuple(name.decode("ascii") for name in summary.unknown),
    )


def end_orphans(
    summaries: Mapping[datetime, WindowSummary], until: tuple[int, int] = LAST_ID
) -> dict[datetime, WindowSummary]:
    """Return the summaries with orphans up to there, or where those of a window end that has too many: of them it is
    known which other window has one, too."""
    until = min([until, *(summary.runs.until for summary in summaries.values())])
    return {start: replace(each, runs=each.runs.end_orphans(until)) for start, each in summaries.items()}


def find_repeated(summaries: Mapping[datetime, WindowSummary]) -> tuple[OffsetRange, ...]:
    """Return the orphans' offsets that another of these windows has, too: each is a conflict in both."""
    bounds: list[tuple[KafkaPartition, int, int, int]] = []  # how many windows more hold what follows, and as an orphan
    for summary in summaries.values():
        orphans = coalesce(piece for piece, _ in summary.runs.list_ranges(ORPHAN))
        for piece in coalesce((*orphans, *_list_contested(summary))):
            bounds += [(piece.source, piece.start, 1, 0), (piece.source, piece.end, -1, 0)]
        for piece in orphans:
            bounds += [(piece.source, piece.start, 0, 1), (piece.source, piece.end, 0, -1)]
    repeated: list[OffsetRange] = []
    windows = as_orphan = 0
    for (source, at, step, of_orphans), (_, until, _, _) in pairwise(sorted(bounds)):
        windows, as_orphan = windows + step, as_orphan + of_orphans
        if windows > 1 and as_orphan:
            repeated.append(OffsetRange(source, at, until))
    return coalesce(repeated)


def drop_repeated(unlanded: Unlanded, repeated: tuple[OffsetRange, ...]) -> Unlanded:
    """Return the window's unlanded lines, by a fold that took `repeated` for held by Kafka, with those as conflicts."""
    own = intersect(unlanded.pending, repeated)
    conflicts = unlanded.conflicts + sum(map(len, own))
    return replace(unlanded, pending=subtract(unlanded.pending, own), conflicts=conflicts)


def _list_contested(summary: WindowSummary) -> tuple[OffsetRange, ...]:
    ids = sorted(set(zip(summary.contested.source.tolist(), summary.contested.offset.tolist(), strict=True)))
    return coalesce(OffsetRange(name_source(source), offset, offset + 1) for source, offset in ids)
