"""Facts about one window, gathered from the ledger and the length of the window file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceover.context import PipelineContext
from onceover.detection.evidence import find_incomplete_partitions
from onceover.detection.look import judge_windows
from onceover.errors import OnceoverError, UnknownWindowError
from onceover.explain.next_steps import list_next_steps
from onceover.ledger import compactions
from onceover.ledger.window_history import read_window_history
from onceover.ledger.windows import WindowState
from onceover.model.finding import Finding
from onceover.model.finding_kinds import BY_SCAN, RAW_DAMAGE, Kind
from onceover.model.remedies import Remedy
from onceover.model.window import Window, WindowRange


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """A window: the ledger's rows about it, and the findings that follow from them and the file's length now.

    `judged` is None if the window is open, a batch is landing in it, or raw cannot be reached;
    `not_judged` says which.
    """

    pipeline: str
    window: Window
    rows: Mapping[str, Any]
    judged: tuple[Finding, ...] | None
    not_judged: str | None
    file_length: int | None
    changing: bool
    of_pipeline: tuple[Finding, ...]
    raw_store: str
    window_file: str
    compacted: Mapping[str, Any] | None
    has_unknown_compacted: bool
    aggregates: str
    lost_schema: str | None
    zone_data: str = ""

    @property
    def state(self) -> str:
        state = str(self.rows["window"]["state"])
        is_damaged = state == WindowState.CERTIFIED and any(row["kind"] in RAW_DAMAGE for row in self.findings)
        return WindowState.DAMAGED if is_damaged else state

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """The present findings: as just judged, else the ledger's open ones."""
        noted = [row for row in self.rows["findings"] if row["resolved_at"] is None]
        if self.judged is None:
            return noted
        seen = {row["kind"]: row for row in noted}
        fresh = [{**seen.get(f.kind, {}), "kind": str(f.kind), "evidence": dict(f.evidence)} for f in self.judged]
        judged = {f.kind for f in self.judged}
        # Lengths show no finding of a scan: such a finding stays open until a repair resolves it. That a repair lacked
        # lines says no more than that lines are missing.
        shown = BY_SCAN - judged - ({Kind.FAILED_PROOF} if Kind.MISSING_FILE in judged else set())
        return fresh + [row for row in noted if row["kind"] in shown]

    @property
    def _failures(self) -> Sequence[str]:
        """The codes of the window's last repair if that failed, or of the one that blocked it."""
        repairs = self.rows["repairs"]
        if self.rows["window"]["blocked_why"]:
            repairs = [repair for repair in repairs if repair["state"] == "failed"]
        return repairs[-1]["failures"] if repairs and repairs[-1]["state"] == "failed" else ()

    @property
    def steps(self) -> list[Remedy]:
        kinds = [str(row["kind"]) for row in self.findings] + [str(f.kind) for f in self.of_pipeline]
        window = self.rows["window"]
        failed, compares = self._failures, window["rows_without_raw"]
        return list_next_steps(
            self.pipeline, self.window, self.state, kinds, self.changing, failed, compares, self.has_unknown_compacted
        )


def gather(context: PipelineContext, window: Window) -> WindowFacts:
    """Read the ledger and raw's lengths. Raises UnknownWindowError for a window without any landing."""
    registered = context.read_registration()
    rows: Mapping[str, Any] = read_window_history(context.ledger, registered.name, window.start)
    if rows["window"] is None:
        raise UnknownWindowError(
            f"window {window} of {registered.name} is unknown: no record with an event time in it was ever read; list "
            f"the known windows with `onceover windows {registered.name}`, and see how far ingest is "
            "with `onceover doctor`"
        )
    judged, not_judged, length, changing, of_pipeline = _judge(context, window)
    compacted = _read_compacted(context, window)
    if rows["window"]["state"] == "expired":
        not_judged = describe_expiry(rows["window"]["expired_why"])
    return WindowFacts(
        pipeline=registered.name,
        window=window,
        rows=rows,
        judged=judged,
        not_judged=not_judged,
        file_length=length,
        changing=changing,
        of_pipeline=of_pipeline,
        raw_store=context.root.read_store(),
        window_file=context.layout.window_file(window.start),
        compacted=compacted,
        has_unknown_compacted=any(f.kind is Kind.MISSING_FILE for f in judged or ())
        and _has_unknown_compacted(context, window, compacted),
        aggregates=f"aggregates.{registered.name}",
        zone_data=registered.contract.zone_data,
        lost_schema=None if length is None else _find_lost_schema(context),
    )


def describe_expiry(expired_why: str | None) -> str:
    """Return why a window counts as expired: the ledger's stored reason, or without one the pipeline's retention."""
    return f"it counts as expired, {expired_why}" if expired_why else "its raw has expired by the pipeline's retention"


def _read_compacted(context: PipelineContext, window: Window) -> Mapping[str, Any] | None:
    """Return the window's last compacted file, its bytes, and whether its text has expired in favour of that file."""
    compacted, replaces_text = compactions.read_last_compaction(context.ledger, context.name, window.start)
    if compacted is None:
        return None
    path = context.layout.compacted_file(window.start, compacted.digest)
    return {"path": path, "bytes": compacted.bytes, "replaces_text": replaces_text}


def _has_unknown_compacted(context: PipelineContext, window: Window, known: Mapping[str, Any] | None) -> bool:
    """Return whether a compacted file of the window is there that the ledger does not know. Raw was just reached."""
    files = context.files.list_window_files(window.start, window.end)
    return any(file.is_compacted and file.path != (known or {}).get("path") for file in files)


def _find_lost_schema(context: PipelineContext) -> str | None:
    """Return what is wrong with a schema that raw was to keep, and what to do. Raw was just reached."""
    try:
        context.require_schemas()
    except OnceoverError as error:
        return str(error)
    return None


def _judge(
    context: PipelineContext, window: Window
) -> tuple[tuple[Finding, ...] | None, str | None, int | None, bool, tuple[Finding, ...]]:
    only = WindowRange(window.start, window.end)
    try:
        context.root.require_same_store()
        context.files.read_lengths([])
        seen = judge_windows(context.ledger, context.name, context.files, only, every=True, patience=0.0)
    except OnceoverError as error:
        # The ledger alone is worth reporting; if the ledger itself failed, this raises again.
        return None, str(error), None, False, find_incomplete_partitions(context.ledger, context.name)
    for judgement in seen.judgements:
        return judgement.findings, None, judgement.file_length, False, seen.ledger.findings
    if seen.changing:
        return None, "a batch is landing in it right now", None, True, seen.ledger.findings
    opened = judge_windows(context.ledger, context.name, context.files, only, every=True, patience=0.0, open_ones=True)
    for judgement in opened.judgements:  # of an open window only lost lines are a fault
        lost = tuple(finding for finding in judgement.findings if finding.kind is Kind.MISSING_FILE)
        return (lost or None), "it is still open", judgement.file_length, False, seen.ledger.findings
    why = "a batch is landing in it right now" if opened.changing else "it is still open"
    return None, why, None, bool(opened.changing), seen.ledger.findings
