"""The sweep: compares certified windows, which detection skips, with their certificates: file lengths, control rows,
and the rows that readers query.

A sweep changes nothing. `reopen` takes the windows that differ, and the next detection judges and repairs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from onceover.context import PipelineContext
from onceover.detection.certified import (
    CertifiedWindow,
    count_certified,
    list_certified,
    read_certified,
    read_certified_versions,
)
from onceover.detection.files_without_window import register_unknown_files
from onceover.detection.look import Files, find_missing_compacted
from onceover.ledger.batches import list_in_flight
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import revoke
from onceover.ledger.database import Connection
from onceover.ledger.expiries import list_quarantine_lengths
from onceover.ledger.findings import note_finding
from onceover.ledger.windows import bump_versions, lock_windows
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.judgement import judge_window
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing

PATIENCE_SECONDS = 60.0
_AT_ONCE = 2016  # windows of one query; a week of those of 5 minutes

Say = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class DifferingWindow:
    """A window that differs from its certificate, with the findings. `local` as in Window."""

    window: CertifiedWindow
    findings: tuple[Finding, ...]
    local: str = ""

    @property
    def window_start(self) -> datetime:
        return self.window.evidence.window_start

    def as_dict(self) -> dict[str, object]:
        return {"window": self.window_start, "local": self.local, "findings": self.findings}


@dataclass(frozen=True, slots=True)
class ShortQuarantine:
    """A day of quarantine whose file at `path` has lost records: it is shorter than what landed, or missing."""

    day: date
    path: str
    expected_length: int
    file_length: int | None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of one sweep. `reopened` counts the differing windows that detection will judge again because of it;
    those that changed meanwhile it judges anyway. `waiting` counts windows that differ perhaps only because a batch is
    landing in them. A sweep of all windows looks at the days of `quarantine` too."""

    pipeline: str
    compared: int
    differing: tuple[DifferingWindow, ...]
    waiting: int
    reopened: int = 0
    quarantine: tuple[ShortQuarantine, ...] = ()


def sweep_pipeline(
    context: PipelineContext,
    window_range: WindowRange | None = None,
    *,
    write: bool = True,
    say: Say = lambda done, of: None,
) -> SweepResult:
    """Sweep a pipeline's certified windows, of the range or all, and reopen those that differ if `write`. Compares none
    for a pipeline that has not run yet. Calls `say` with the windows compared so far and their total."""
    context.require_own_root()
    if not context.is_registered():
        return SweepResult(context.name, 0, (), 0)
    registered = context.require_same_contract()
    if write and window_range is None:
        register_unknown_files(context, registered, every=True)
    swept = sweep_windows(context.ledger, registered, context.files, window_range, say=say)
    reopened = reopen(context.ledger, registered.name, swept.differing) if write else []
    quarantine = find_short_quarantine(context) if window_range is None else ()
    return replace(swept, reopened=len(reopened), quarantine=quarantine)


def find_short_quarantine(context: PipelineContext) -> tuple[ShortQuarantine, ...]:
    """Return the days whose quarantine file is missing or shorter than what landed in it."""
    expected = list_quarantine_lengths(context.ledger, context.name)  # before the files, which only grow
    lengths = context.files.list_quarantine_days() if expected else {}
    path = context.files.layout.quarantine_file
    return tuple(
        ShortQuarantine(day, path(day), length, lengths.get(day))
        for day, length in expected.items()
        if lengths.get(day, 0) < length
    )


def sweep_windows(
    connection: Connection,
    registered: RegisteredPipeline,
    files: Files,
    window_range: WindowRange | None,
    patience: float = PATIENCE_SECONDS,
    say: Say = lambda done, of: None,
) -> SweepResult:
    """Compare each window whose certificate is valid. A difference that a batch in flight may explain counts only if it
    persists, at the same version, after that batch has ended; waits for that at most `patience` seconds."""
    start = window_range.start if window_range else None
    end = window_range.end if window_range else None
    whole = count_certified(connection, registered.name, start, end)
    flying = list_in_flight(connection, registered.name)
    first: dict[datetime, DifferingWindow] = {}
    compared = 0
    while windows := list_certified(connection, registered, start, end, _AT_ONCE):
        first |= _compare(windows, files, registered.windowing)
        compared += len(windows)
        start = windows[-1].evidence.window_end
        say(compared, whole)
    # A batch that began since may have appended to a file before the ledger shows it.
    flying |= list_in_flight(connection, registered.name)
    if not first:
        return SweepResult(registered.name, compared, (), 0)
    deadline = time.monotonic() + patience
    while flying & list_in_flight(connection, registered.name):
        if time.monotonic() > deadline:
            kept = tuple(each for each in first.values() if each.window.rows_differ)
            return SweepResult(registered.name, compared, kept, len(first) - len(kept))
        time.sleep(0.2)
    second = _compare(read_certified(connection, registered, first), files, registered.windowing)
    versions = {start: each.window.evidence.version for start, each in first.items()}
    steady = (each for start, each in second.items() if each.window.evidence.version == versions[start])
    return SweepResult(registered.name, compared, tuple(steady), 0)


def reopen(connection: Connection, pipeline: str, differing: Iterable[DifferingWindow]) -> list[datetime]:
    """Have the next detection judge these windows, in one transaction; return those unchanged since the sweep.

    Revokes the certificate where rows differ: detection compares only the control row, and only a repair reads rows.
    """
    by_start = {each.window_start: each for each in differing}
    if not by_start:
        return []
    with connection.transaction():
        lock_windows(connection, pipeline, sorted(by_start))
        now = read_certified_versions(connection, pipeline, by_start)
        same = [each for start, each in sorted(by_start.items()) if now.get(start) == each.window.evidence.version]
        for each in same:
            for finding in each.findings:
                note_finding(connection, pipeline, each.window_start, finding)
            if each.window.rows_differ:
                revoke(connection, pipeline, each.window.certificate_id, "the aggregates were changed under it")
        bump_versions(connection, pipeline, [each.window_start for each in same if not each.window.rows_differ])
    return [each.window_start for each in same]


def find_differences(
    window: CertifiedWindow, file_length: int | None, *, compacted_is_gone: bool = False
) -> tuple[Finding, ...]:
    """Return the differences from the certificate, at most one finding of a kind."""
    judged = judge_window(window.evidence, file_length, compacted_is_gone=compacted_is_gone)
    findings = {finding.kind: finding for finding in judged}
    if window.rows_differ:
        rows = {"certified_rows": window.stated.rows, "rows": window.rows.rows, "difference": "rows"}
        mismatch = findings.get(Kind.AGGREGATE_MISMATCH)
        findings[Kind.AGGREGATE_MISMATCH] = Finding(
            Kind.AGGREGATE_MISMATCH, {**(mismatch.evidence if mismatch else {}), **rows}
        )
    return tuple(findings.values())


def _compare(windows: Sequence[CertifiedWindow], files: Files, windowing: Windowing) -> dict[datetime, DifferingWindow]:
    by_start = {window.evidence.window_start: window for window in windows}
    lengths = files.read_lengths(by_start)
    missing = find_missing_compacted(files, [window.evidence for window in windows])
    judged = (
        (start, window, find_differences(window, lengths.get(start), compacted_is_gone=start in missing))
        for start, window in by_start.items()
    )
    return {
        start: DifferingWindow(window, findings, windowing.describe_local(start))
        for start, window, findings in judged
        if findings
    }
