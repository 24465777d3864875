"""Losses that a person may accept, each ready for its form: the offsets, why they are lost, and likely windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from onceover.explain.finding_text import parse_offset_ranges
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason
from onceover.model.offsets import OffsetRange
from onceover.model.window import parse_moment
from onceover.model.windowing import Windowing

MAX_LOSSES: Final = 20


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets that nothing reads any more: `kind` as `accept-loss` names it. The records may have belonged to windows
    in [start, end), by what landed before and after them; None if nothing tells. `accepted`: a person has accepted
    it, and detection has not looked again."""

    offsets: OffsetRange
    kind: str
    accepted: bool = False
    start: datetime | None = None
    end: datetime | None = None


def list_losses(holes: Iterable[Mapping[str, Any]], skipped: Iterable[OffsetRange], windowing: Windowing) -> list[Loss]:
    """Return the first 20 losses that these findings of a pipeline show. `skipped` are its holes as they are now."""
    now = tuple(skipped)
    found: list[Loss] = []
    for row in holes:
        evidence: Mapping[str, Any] = row["evidence"]
        if row["kind"] == Kind.HOLE:
            found += [
                _build_loss(gap, now, windowing) for gap in evidence.get("gaps", ()) if gap["reason"] == Reason.EXPIRED
            ]
        elif row["kind"] == Kind.UNREADABLE:
            ranges = parse_offset_ranges([each["offsets"] for each in evidence["stopped"]])
            found += [Loss(offsets, "unreadable") for offsets in ranges]
    return found[:MAX_LOSSES]


def _build_loss(gap: Mapping[str, Any], now: Iterable[OffsetRange], windowing: Windowing) -> Loss:
    (offsets,) = parse_offset_ranges([gap["offsets"]])
    likely = sorted(map(parse_moment, gap["likely_windows"]))
    accepted = not any(each.overlaps(offsets) for each in now)
    if not likely:
        return Loss(offsets, "expired", accepted)
    return Loss(offsets, "expired", accepted, likely[0], windowing.window_at(likely[-1]).end)
