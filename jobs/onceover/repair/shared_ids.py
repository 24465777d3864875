"""IDs that two windows of one repair have: conflicts of both, with the contents of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.summary import Contents
from onceover.model.conflict import ContestedId
from onceover.model.offsets import KafkaPartition
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.repair.window_accounts import list_contested_ids

_Id = tuple[KafkaPartition, int]


def add_shared_conflicts(
    rebuilt: Mapping[datetime, RebuiltWindow], shared: Mapping[datetime, Contents]
) -> dict[datetime, RebuiltWindow]:
    """Return the windows with each ID that two of them count, `shared` ones being all that can be: as a conflict if its
    contents differ, and as misdated if its event times do, unless it is that in the window alone."""
    result = add_contents(rebuilt, shared)
    for start, own, every in _list_repeated(shared):
        window = result[start]
        result[start] = replace(
            window,
            conflicts=window.conflicts + _differ(own, every, 0),
            misdated=window.misdated + _differ(own, every, 1),
        )
    return result


def add_contents(
    rebuilt: Mapping[datetime, RebuiltWindow], shared: Mapping[datetime, Contents]
) -> dict[datetime, RebuiltWindow]:
    """Return the windows with each of these IDs that is in two of them as contested, with all its contents."""
    found: dict[datetime, dict[_Id, ContestedId]] = {}
    for start, _, every in _list_repeated(shared):
        found.setdefault(start, {})[every.source, every.offset] = every
    result = dict(rebuilt)
    for start, ids in found.items():
        contested = {(each.source, each.offset): each for each in result[start].contested} | ids
        result[start] = replace(result[start], contested=tuple(each for _, each in sorted(contested.items())))
    return result


def _list_repeated(shared: Mapping[datetime, Contents]) -> Iterator[tuple[datetime, ContestedId, ContestedId]]:
    """Yield each ID that two windows have, for each of them, with its contents there and everywhere."""
    by_id: dict[_Id, dict[datetime, ContestedId]] = {}
    for start, contents in _select_repeated(shared).items():
        for each in list_contested_ids(contents):
            by_id.setdefault((each.source, each.offset), {})[start] = each
    for of_windows in by_id.values():
        every = tuple(sorted({content for each in of_windows.values() for content in each.contents}))
        for start, own in of_windows.items():
            yield start, own, replace(own, contents=every)


def _select_repeated(shared: Mapping[datetime, Contents]) -> dict[datetime, Contents]:
    """Return the contents of IDs that two windows have: few, though all IDs of a batch that was read again are
    shared."""
    if len(shared) < 2:
        return {}
    contents = list(shared.values())
    window = np.repeat(np.arange(len(contents)), [len(each) for each in contents])
    source, offset = (np.concatenate([getattr(each, name) for each in contents]) for name in ("source", "offset"))
    order = np.lexsort((window, offset, source))
    begins = mark_changes(source[order], offset[order])
    is_second = mark_changes(window[order]) & ~begins
    number = np.cumsum(begins) - 1
    repeated = np.zeros(len(window), bool)
    repeated[order] = np.isin(number, number[is_second])
    return {start: each.select(repeated[window == n]) for n, (start, each) in enumerate(shared.items())}


def _differ(own: ContestedId, every: ContestedId, place: int) -> bool:
    return len({each[place] for each in own.contents}) == 1 < len({each[place] for each in every.contents})
