"""Judgement of closed windows, right or failed and why, from the ledger and the lengths of files.

A finding about bytes or aggregates counts only if it persists after every batch in flight at the first look has landed
or been superseded: detection looks, waits for exactly those batches, and looks again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from onceover.detection.evidence import EvidenceSnapshot, read_evidence, read_versions
from onceover.ledger import batches
from onceover.ledger.database import Connection
from onceover.model.finding import Evidence, Finding, is_right
from onceover.model.judgement import judge_window
from onceover.model.raw_file import CompactedFile
from onceover.model.window import WindowRange

PATIENCE_SECONDS = 60.0


class Files(Protocol):
    """Files of a pipeline: bytes of each existing window file, and paths of compacted files of the recorded length."""

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]: ...
    def find_compacted_files(self, compacted: Mapping[datetime, CompactedFile]) -> Mapping[datetime, str]: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """A window's evidence, the length of its file, and the findings that follow."""

    evidence: Evidence
    file_length: int | None
    findings: tuple[Finding, ...]

    @property
    def is_right(self) -> bool:
        return is_right(self.findings)

    @property
    def may_change(self) -> bool:
        return any(finding.kind.meaning.waits_for_batches for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Look:
    """One consistent look at a pipeline, with what the `ledger` said. `changing` counts windows left out, as batches
    changed them meanwhile."""

    judgements: tuple[Judgement, ...]
    changing: int
    in_flight: frozenset[int]
    ledger: EvidenceSnapshot


def judge_windows(
    connection: Connection,
    pipeline: str,
    files: Files,
    window_range: WindowRange | None,
    every: bool,
    patience: float = PATIENCE_SECONDS,
    *,
    open_ones: bool = False,
) -> Look:
    """Judge the closed windows of the range (None: all) that are not certified; with `every`, certified ones too; with
    `open_ones`, the open windows instead.

    Waits at most `patience` seconds for batches in flight; windows that they may explain then count as changing.
    """
    first = _look_once(connection, pipeline, files, window_range, every, open_ones)
    if not first.in_flight or not any(j.may_change for j in first.judgements):
        return first
    deadline = time.monotonic() + patience
    while batches.list_in_flight(connection, pipeline) & first.in_flight:
        if time.monotonic() > deadline:
            kept = tuple(j for j in first.judgements if not j.may_change)
            return replace(first, judgements=kept, changing=first.changing + len(first.judgements) - len(kept))
        time.sleep(0.2)
    second = _look_once(connection, pipeline, files, window_range, every, open_ones)
    unsettled = {j.evidence.window_start for j in first.judgements if j.may_change}
    # A new finding may be due to a batch that began since the first look: the next detection judges that window.
    kept = tuple(j for j in second.judgements if not j.may_change or j.evidence.window_start in unsettled)
    return replace(second, judgements=kept, changing=second.changing + len(second.judgements) - len(kept))


def find_missing_compacted(files: Files, evidence: Iterable[Evidence]) -> frozenset[datetime]:
    """Return the windows whose compacted file replaces the text, but is missing or has another length than recorded."""
    needed = {each.window_start: each.compacted for each in evidence if each.compacted}
    return frozenset(needed.keys() - files.find_compacted_files(needed).keys()) if needed else frozenset()


def _judge(evidence: Evidence, length: int | None, compacted_is_gone: bool) -> Judgement:
    return Judgement(evidence, length, judge_window(evidence, length, compacted_is_gone=compacted_is_gone))


def _look_once(
    connection: Connection,
    pipeline: str,
    files: Files,
    window_range: WindowRange | None,
    every: bool,
    open_ones: bool,
) -> Look:
    start = window_range.start if window_range else None
    end = window_range.end if window_range else None
    # Lengths are read between two reads of the ledger: a window whose version differs changed in between.
    in_flight = batches.list_in_flight(connection, pipeline)
    before = read_versions(connection, pipeline, start, end, every, open_ones=open_ones)
    lengths = files.read_lengths(before)
    seen = read_evidence(connection, pipeline, start, end, every, open_ones=open_ones)
    steady = [e for e in seen.evidence if before.get(e.window_start) == e.version]
    missing = find_missing_compacted(files, steady)
    judgements = tuple(_judge(e, lengths.get(e.window_start), e.window_start in missing) for e in steady)
    return Look(judgements, len(seen.evidence) - len(steady), in_flight | seen.in_flight, seen)
