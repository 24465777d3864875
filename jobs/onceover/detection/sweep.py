"""The sweep: whether what was certified is still there. Detection looks no more at a window whose certificate stands;
this does, slowly: file lengths, control rows, and the rows that readers query, beside what each certificate states.

It changes nothing by itself. What it finds is handed to `reopen`, and the next detection judges and repairs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from onceover.context import PipelineContext
from onceover.detection.certified import (
    CertifiedWindow,
    count_certified,
    list_certified,
    raise_versions,
    read_certified,
    read_certified_versions,
)
from onceover.detection.look import Files, find_missing_parquet
from onceover.ledger.batches import in_flight
from onceover.ledger.catalog import Registered
from onceover.ledger.certificates import revoke
from onceover.ledger.database import Connection
from onceover.ledger.findings import note_finding
from onceover.ledger.windows import lock_windows
from onceover.model.finding import Finding, judge_window
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange

PATIENCE_SECONDS = 60.0
_AT_ONCE = 2016  # windows between two looks at the ledger; a week of those of 5 minutes

Say = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class DifferingWindow:
    """A window that no longer is what its certificate says, and in what."""

    window: CertifiedWindow
    findings: tuple[Finding, ...]

    @property
    def window_start(self) -> datetime:
        return self.window.window_start

    @property
    def rows_differ(self) -> bool:
        return self.window.rows_differ


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What one sweep looked at. `reopened` is how many of the differing windows will be judged again; those that
    changed meanwhile are judged anyway. `waiting` windows may differ only because a batch is landing in them."""

    pipeline: str
    compared: int
    differing: tuple[DifferingWindow, ...]
    waiting: int
    reopened: int = 0

    def as_dict(self) -> dict[str, object]:
        return {
            "pipeline": self.pipeline,
            "compared": self.compared,
            "differing": [{"window": each.window_start, "findings": each.findings} for each in self.differing],
            "waiting": self.waiting,
            "reopened": self.reopened,
        }


def sweep_pipeline(
    context: PipelineContext,
    window_range: WindowRange | None = None,
    *,
    write: bool = True,
    say: Say = lambda done, of: None,
) -> SweepResult:
    """Sweep a pipeline's certified windows, of the range or all, and have what differs judged again if `write`.

    A pipeline that never ran has none.
    """
    if not context.is_registered():
        return SweepResult(context.name, 0, (), 0)
    known = context.require_same_contract()
    swept = sweep_windows(context.ledger, known, context.files, window_range, say=say)
    reopened = reopen(context.ledger, known.name, swept.differing) if write else []
    return SweepResult(swept.pipeline, swept.compared, swept.differing, swept.waiting, len(reopened))


def sweep_windows(
    connection: Connection,
    known: Registered,
    files: Files,
    window_range: WindowRange | None,
    patience: float = PATIENCE_SECONDS,
    say: Say = lambda done, of: None,
) -> SweepResult:
    """Compare every window whose certificate stands. What a batch in flight may explain counts only if it is still
    there, at the same version, once that batch has ended."""
    start = window_range.start if window_range else None
    end = window_range.end if window_range else None
    whole = count_certified(connection, known.name, start, end)
    flying = in_flight(connection, known.name)
    first: dict[datetime, DifferingWindow] = {}
    compared = 0
    while windows := list_certified(connection, known, start, end, _AT_ONCE):
        first |= _compare(windows, files)
        compared += len(windows)
        start = windows[-1].window_end
        say(compared, whole)
    # A batch that was begun since may have appended to a file whose window does not show it yet.
    flying |= in_flight(connection, known.name)
    if not first:
        return SweepResult(known.name, compared, (), 0)
    deadline = time.monotonic() + patience
    while flying & in_flight(connection, known.name):
        if time.monotonic() > deadline:
            kept = tuple(each for each in first.values() if each.rows_differ)
            return SweepResult(known.name, compared, kept, len(first) - len(kept))
        time.sleep(0.2)
    second = _compare(read_certified(connection, known, first), files)
    steady = (each for start, each in second.items() if each.window.version == first[start].window.version)
    return SweepResult(known.name, compared, tuple(steady), 0)


def reopen(connection: Connection, pipeline: str, found: Iterable[DifferingWindow]) -> list[datetime]:
    """Have the next detection judge these windows, in one transaction; returns those that still stood as they were.

    Where the rows themselves differ the certificate is revoked: detection compares the control row with the ledger, and
    only a repair looks at rows.
    """
    wanted = {each.window_start: each for each in found}
    if not wanted:
        return []
    with connection.transaction():
        lock_windows(connection, pipeline, sorted(wanted))
        now = read_certified_versions(connection, pipeline, wanted)
        same = [each for start, each in sorted(wanted.items()) if now.get(start) == each.window.version]
        for each in same:
            for finding in each.findings:
                note_finding(connection, pipeline, each.window_start, finding)
            if each.rows_differ:
                revoke(connection, pipeline, each.window.certificate_id, "the aggregates were changed under it")
        raise_versions(connection, pipeline, [each.window_start for each in same if not each.rows_differ])
    return [each.window_start for each in same]


def find_differences(
    window: CertifiedWindow, file_length: int | None, *, parquet_is_gone: bool = False
) -> tuple[Finding, ...]:
    """What is no longer as the certificate states, at most one finding of a kind."""
    judged = judge_window(window.evidence, file_length, parquet_is_gone=parquet_is_gone)
    found = {finding.kind: finding for finding in judged}
    if window.rows_differ and window.stated is not None:
        told = {"certified_rows": window.stated.rows, "rows": window.rows.rows, "difference": "rows"}
        mismatch = found.get(Kind.AGGREGATE_MISMATCH)
        found[Kind.AGGREGATE_MISMATCH] = Finding(
            Kind.AGGREGATE_MISMATCH, {**(mismatch.evidence if mismatch else {}), **told}
        )
    return tuple(found.values())


def _compare(windows: Sequence[CertifiedWindow], files: Files) -> dict[datetime, DifferingWindow]:
    lengths = files.lengths(window.window_start for window in windows)
    gone = find_missing_parquet(files, [window.evidence for window in windows])
    judged = (
        (w, find_differences(w, lengths.get(w.window_start), parquet_is_gone=w.window_start in gone)) for w in windows
    )
    return {w.window_start: DifferingWindow(w, findings) for w, findings in judged if findings}
