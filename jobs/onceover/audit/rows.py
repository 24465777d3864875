"""The aggregates' part of an audit: the windows whose rows can be compared with the records that are held."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from onceover.audit import store as audit_store
from onceover.audit.result import CONFLICTS, Difference, WindowAudit
from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline

MAX_ROWS = 20


def compare_rows(
    context: PipelineContext,
    registered: RegisteredPipeline,
    audit: audit_store.Audit,
    statement: audit_store.LedgerStatement,
    windows: dict[datetime | None, WindowAudit],
    stage: str,
    *,
    is_log_whole: bool,
) -> int:
    """Add the aggregates to each window of the audit's range that can be compared, and leave out other windows. Returns
    the number of expired windows that cannot be."""
    known, expired = statement.windows, 0
    filled = registered.table.list_filled(context.ledger, audit.start, audit.end)
    counted = (start for start, window in known.items() if window.control and window.control.records)
    for listed in {*filled, *counted} - windows.keys():
        windows[listed] = WindowAudit(listed)
    if audit.start is not None and audit.end is not None:
        for other in [s for s in windows if s is None or not audit.start <= s < audit.end]:
            del windows[other]
    whole: list[datetime] = []
    for start, window in list(windows.items()):
        listed_as = None if start is None else known.get(start)
        is_expired = listed_as is not None and listed_as.is_expired
        if is_expired or (start is None and statement.has_expired_quarantine):
            window.differences.pop(Difference.NOT_IN_RAW, None)  # it was there
        if start is None:
            window.not_compared = "records in quarantine are not counted"
        elif not CONFLICTS.isdisjoint(window.differences):
            window.not_compared = "IDs have several contents under one leader epoch"
        elif is_expired and not is_log_whole:
            expired += 1
            window.not_compared = "its raw has expired, and what Kafka no longer holds cannot be compared"
            if not window.held.count and not window.differences:
                del windows[start]
        elif listed_as is not None and listed_as.is_open:
            window.not_compared = "it is open"
        else:
            whole.append(start)
    differing = registered.table.compare(context.ledger, stage, whole, MAX_ROWS)
    for start in whole:
        windows[start].rows = differing.get(start, (0, []))
        windows[start].counted = known[start].control if start in known else None
        if Difference.COMPACTED in windows[start].differences and not windows[start].is_equal:
            windows[start] = replace(
                windows[start],
                rows=None,
                counted=None,
                not_compared="Kafka's compaction removed records of it, and perhaps one before it landed: `onceover "
                "verify` compares the window with its landings",
            )
    return expired
