"""IDs that two windows of one repair count: conflicts of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

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
    by_id: dict[_Id, dict[datetime, ContestedId]] = {}
    for start, contents in shared.items():
        for each in list_contested_ids(contents):
            by_id.setdefault((each.source, each.offset), {})[start] = each
    result = dict(rebuilt)
    for of_windows in by_id.values():
        if len(of_windows) > 1:
            every = tuple(sorted({content for each in of_windows.values() for content in each.contents}))
            for start, each in of_windows.items():
                result[start] = _add_contents(result[start], each, every)
    return result


def _add_contents(window: RebuiltWindow, own: ContestedId, every: tuple[tuple[str, int | None], ...]) -> RebuiltWindow:
    def differ(place: int) -> bool:
        return len({each[place] for each in own.contents}) == 1 < len({each[place] for each in every})

    others = [each for each in window.contested if (each.source, each.offset) != (own.source, own.offset)]
    contested = sorted([*others, replace(own, contents=every)], key=lambda each: (each.source, each.offset))
    return replace(
        window,
        conflicts=window.conflicts + differ(0),
        misdated=window.misdated + differ(1),
        contested=tuple(contested),
    )
