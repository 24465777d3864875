"""Open and expired windows whose files may hold records of an expired hole: only raw can close it, and detection judges
neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.look import judge_windows
from onceover.detection.unexplained_files import UnexplainedFile
from onceover.ledger.gap_sets import ranges_as_json
from onceover.ledger.searched_windows import was_read_for_orphans
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange
from onceover.model.window import WindowRange

_MOST_NAMED = 20


def find_searchable_windows(
    context: PipelineContext,
    expired: Sequence[OffsetRange],
    window_range: WindowRange | None,
    unexplained: Iterable[UnexplainedFile],
) -> Mapping[datetime, tuple[Finding, ...]]:
    """Return the open windows of the range (None: all), and the expired ones among the `unexplained`, that a repair
    has to search for orphans, each with the finding.

    Those are none without `expired` offsets in a hole. A window that was searched already is left out until its file
    grows or the hole changes; a blocked one is left out unless the range names it.
    """
    if not expired:
        return {}
    seen = judge_windows(context.ledger, context.name, context.files, window_range, every=True, open_ones=True)
    expired_files = [file for file in unexplained if file.expected.is_expired]
    blocked = seen.blocked | {file.window_start for file in expired_files if file.expected.is_blocked}
    found = {file.window_start: file.finding for file in expired_files} | {
        judgement.evidence.window_start: finding
        for judgement in seen.judgements
        for finding in judgement.findings
        if finding.kind is Kind.UNACCOUNTED_BYTES
    }
    hole = {"open_for": ranges_as_json(expired[:_MOST_NAMED]), "expired": sum(map(len, expired))}
    searchable = {start: replace(f, evidence={**f.evidence, **hole}) for start, f in sorted(found.items())}
    return {
        start: (finding,)
        for start, finding in searchable.items()
        if (window_range is not None or start not in blocked)
        and not was_read_for_orphans(context.ledger, context.name, start, finding)
    }
