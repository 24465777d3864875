"""Pending records: intact lines that had not landed when their window was certified, because Kafka still held them.

Once one of them has landed, or Kafka no longer holds it, the certificate rests on what is no longer so: a repair reads
the window's file again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.look import Look
from onceover.ledger.certificates import list_pending, reopen_certified
from onceover.ledger.gap_sets import ranges_as_json
from onceover.ledger.landed_offsets import read_accounted
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange, intersect, subtract

log = logging.getLogger(__name__)
_MOST_RANGES = 20


def reopen_pending(context: PipelineContext) -> Mapping[datetime, Finding]:
    """Return the windows whose certificates name records as pending that have landed since or that Kafka has lost, each
    with the finding; give these windows a new version. Asks Kafka only if there is a pending record."""
    pending = list_pending(context.ledger, context.name)
    if not pending:
        return {}
    accounted = tuple(read_accounted(context.ledger, context.name))
    held = context.read_held(f"{len(pending)} windows whose certificates name pending records")
    found = {start: _judge(ranges, accounted, held) for start, ranges in pending.items()}
    findings = {start: finding for start, finding in found.items() if finding is not None}
    reopen_certified(context.ledger, context.name, findings)
    return findings


def add_findings(look: Look, findings: Mapping[datetime, Finding]) -> Look:
    """Return the look with each of these findings added to its window's judgement."""
    if not findings:
        return look
    judgements = (
        replace(j, findings=(*j.findings, findings[j.evidence.window_start]))
        if j.evidence.window_start in findings
        else j
        for j in look.judgements
    )
    return replace(look, judgements=tuple(judgements))


def _judge(
    pending: Sequence[OffsetRange], accounted: Sequence[OffsetRange], held: Sequence[OffsetRange] | None
) -> Finding | None:
    landed = intersect(pending, accounted)
    lost = () if held is None else subtract(subtract(pending, accounted), held)
    if not landed and not lost:
        return None
    counts = {"records": _count(landed) + _count(lost), "landed": _count(landed), "lost": _count(lost)}
    return Finding(Kind.PENDING_RECORD, {**counts, "offsets": ranges_as_json([*landed, *lost][:_MOST_RANGES])})


def _count(ranges: Iterable[OffsetRange]) -> int:
    return sum(map(len, ranges))
