"""Open windows whose files may hold records of an expired hole: the hole keeps them open, and only raw can close it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.look import judge_windows
from onceover.ledger.gap_sets import ranges_as_json
from onceover.ledger.repair_requests import was_read_for_orphans
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange
from onceover.model.window import WindowRange

_MOST_NAMED = 20


def find_open_suspects(
    context: PipelineContext, expired: Sequence[OffsetRange], window_range: WindowRange | None
) -> Mapping[datetime, tuple[Finding, ...]]:
    """Return the open windows of the range (None: all) that a repair has to search for orphans, each with the finding.

    Those are none without `expired` offsets in a hole. A window that was searched already is left out until its file
    grows or the hole changes.
    """
    if not expired:
        return {}
    seen = judge_windows(context.ledger, context.name, context.files, window_range, every=True, open_ones=True)
    suspects: dict[datetime, tuple[Finding, ...]] = {}
    for judgement in seen.judgements:
        start = judgement.evidence.window_start
        unaccounted = [f for f in judgement.findings if f.kind is Kind.UNACCOUNTED_BYTES]
        if not unaccounted or start in seen.blocked:
            continue
        hole = {"open_for": ranges_as_json(expired[:_MOST_NAMED]), "expired": sum(map(len, expired))}
        finding = replace(unaccounted[0], evidence={**unaccounted[0].evidence, **hole})
        if not was_read_for_orphans(context.ledger, context.name, start, finding):
            suspects[start] = (finding,)
    return suspects
