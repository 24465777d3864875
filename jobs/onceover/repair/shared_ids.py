"""IDs that two windows of one repair have: conflicts of both, with the contents of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np

from onceover.lines.ranges import name_source
from onceover.lines.runs import Runs
from onceover.lines.summary import Contents
from onceover.model.conflict import ContestedId
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.repair.window_accounts import list_contested_ids

_Id = tuple[KafkaPartition, int]


def find_in_two(shared: Iterable[Runs]) -> tuple[OffsetRange, ...]:
    """Return the IDs that two windows have, by the runs of each."""
    runs = [each for each in shared if len(each)]
    if len(runs) < 2:
        return ()
    source, start, end = (np.concatenate([getattr(each, name) for each in runs]) for name in ("source", "start", "end"))
    order = np.lexsort((start, source))
    source, start, end = source[order], start[order], end[order]
    found: list[OffsetRange] = []
    for number in np.unique(source).tolist():
        first, after = np.searchsorted(source, number), np.searchsorted(source, number, "right")
        begun, until = start[first + 1 : after], end[first + 1 : after]
        before = np.maximum.accumulate(end[first:after])[:-1]  # of a window, runs do not overlap
        at = np.flatnonzero(begun < before)
        pairs = zip(begun[at].tolist(), np.minimum(until, before)[at].tolist(), strict=True)
        found += (OffsetRange(name_source(number), *pair) for pair in pairs)
    return coalesce(found)


def add_shared_conflicts(
    rebuilt: Mapping[datetime, RebuiltWindow], listed: Mapping[datetime, Contents]
) -> dict[datetime, RebuiltWindow]:
    """Return the windows with each of the `listed` IDs that two of them count: as a conflict if its contents differ,
    and as misdated if its event times do, unless it is that in the window alone."""
    result = add_contents(rebuilt, listed)
    for start, own, every in _list_repeated(listed):
        window = result[start]
        result[start] = replace(
            window,
            conflicts=window.conflicts + _differ(own, every, 0),
            misdated=window.misdated + _differ(own, every, 1),
        )
    return result


def add_contents(
    rebuilt: Mapping[datetime, RebuiltWindow], listed: Mapping[datetime, Contents]
) -> dict[datetime, RebuiltWindow]:
    """Return the windows with each of these IDs that is in two of them as contested, with all its contents."""
    found: dict[datetime, dict[_Id, ContestedId]] = {}
    for start, _, every in _list_repeated(listed):
        found.setdefault(start, {})[every.source, every.offset] = every
    result = dict(rebuilt)
    for start, ids in found.items():
        contested = {(each.source, each.offset): each for each in result[start].contested} | ids
        result[start] = replace(result[start], contested=tuple(each for _, each in sorted(contested.items())))
    return result


def _list_repeated(listed: Mapping[datetime, Contents]) -> Iterator[tuple[datetime, ContestedId, ContestedId]]:
    """Yield each ID that two windows have, for each of them, with its contents there and everywhere."""
    by_id: dict[_Id, dict[datetime, ContestedId]] = {}
    for start, contents in listed.items():
        for each in list_contested_ids(contents):
            by_id.setdefault((each.source, each.offset), {})[start] = each
    for of_windows in by_id.values():
        if len(of_windows) > 1:
            every = tuple(sorted({content for each in of_windows.values() for content in each.contents}))
            for start, own in of_windows.items():
                yield start, own, replace(own, contents=every)


def _differ(own: ContestedId, every: ContestedId, place: int) -> bool:
    return len({each[place] for each in own.contents}) == 1 < len({each[place] for each in every.contents})
