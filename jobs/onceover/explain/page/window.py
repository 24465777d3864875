"""One window as values, with the sentences for people: whole for `onceover explain --json`, and cut short for the page
and the terminal, with its counts, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from onceover.context import PipelineContext
from onceover.explain.finding_text import describe_finding
from onceover.explain.gather import WindowFacts, gather
from onceover.explain.window_text import (
    describe_certificate,
    describe_certificate_basis,
    describe_loss,
    describe_marks,
    describe_notes,
    describe_origin,
    describe_repair,
    describe_state,
    describe_verdict,
    list_places,
    select_landings,
)
from onceover.ledger.landings import count_distinct_records
from onceover.model.finding_kinds import Kind, failures
from onceover.model.window import Window, format_second
from onceover.model.wording import format_records, pluralize

_MOST: Final = 20


def describe_window(known: WindowFacts) -> dict[str, object]:
    """Return all of a window's facts."""
    return {
        "pipeline": known.pipeline,
        "window": known.window,
        "end": known.window.end,
        "local": known.window.local,
        "state": known.state,
        "verdict": describe_verdict(known),
        "notes": describe_notes(known),
        "findings": [describe_row(row, known) for row in known.findings],
        "findings_of_pipeline": [
            describe_row({"kind": f.kind, "evidence": f.evidence}, known) for f in known.of_pipeline
        ],
        "judged_now": known.judged is not None,
        "not_judged_because": known.not_judged,
        "file": {"store": known.raw_store, "path": known.window_file, "length": known.file_length},
        "compacted": known.compacted,
        "aggregates": known.aggregates,
        "certificate_rests_on": known.rows["rests_on"],
        "certificate_rests_on_text": describe_certificate_basis(known),
        "next_steps": [{"text": step.text, "command": step.command} for step in known.steps],
        "ledger": known.rows,
    }


def describe_row(row: Mapping[str, Any], known: WindowFacts) -> dict[str, object]:
    """Return a finding's row with its words, `what` and `how`."""
    text = describe_finding(row["kind"], row["evidence"], known.rows["landings"])
    return {**row, "what": text.what, "how": text.how}


def read_window(context: PipelineContext, window: Window) -> dict[str, Any]:
    """Judge the window now, by the ledger and the length of its file; where raw cannot be reached, by the last
    findings in the ledger. Raise TerminalError for a window without any landing."""
    return describe_shortly(context, gather(context, window))


def describe_shortly(context: PipelineContext, facts: WindowFacts) -> dict[str, Any]:
    """Return a window's facts as `describe_window` does, with at most 20 landings, repairs, certificates and losses,
    each with its `text`; `left_out` counts the others. Adds `state_text`, `sentence`, `since` with its `source`, and
    `counts`."""
    counts, since = _count(context, facts), find_since(facts)
    rows = facts.rows
    landings = select_landings(rows["landings"], facts.findings)
    repairs, certificates, losses = (rows[name][-_MOST:] for name in ("repairs", "certificates", "losses"))
    resolved = [row for row in rows["findings"] if row["resolved_at"] is not None][-_MOST:]
    return {
        **describe_window(facts),
        "state_text": describe_state(facts),
        "sentence": describe_window_shortly(facts, counts, since),
        "since": since,
        "counts": counts,
        "places": list_places(facts),
        "certificate_text": describe_certificate(facts),
        "ledger": {
            "window": rows["window"],
            "taken": rows["taken"],
            "landings": [{**row, "text": describe_marks(row) + (describe_origin(row) or "")} for row in landings],
            "findings": [describe_row(row, facts) for row in resolved],
            "repairs": [{**row, "text": describe_repair(row)} for row in repairs],
            "certificates": list(certificates),
            "losses": [{**row, "text": describe_loss(row)} for row in losses],
            "left_out": {
                "landings": len(rows["landings"]) - len(landings),
                **{name: max(0, len(rows[name]) - _MOST) for name in ("repairs", "certificates", "losses")},
            },
        },
    }


def find_since(facts: WindowFacts) -> dict[str, object] | None:
    """Return since when the window is wrong: when the later of two overlapping landings landed, else when detection
    first saw it; `source` says which. None if nothing is wrong."""
    wrong = [row for row in facts.findings if row["kind"] in failures([row["kind"]])]
    landed: dict[int, datetime] = {row["landing_id"]: row["landed_at"] for row in facts.rows["landings"]}
    doubled = [
        max(landed[number] for number in row["evidence"]["landings"] if number in landed)
        for row in wrong
        if row["kind"] == Kind.DUPLICATED and any(number in landed for number in row["evidence"].get("landings", ()))
    ]
    if doubled:
        return {"at": min(doubled), "source": "the second landing of the same offsets"}
    seen = [row["first_seen_at"] for row in wrong if row.get("first_seen_at")]
    return {"at": min(seen), "source": "when it was first seen"} if seen else None


def describe_window_shortly(
    facts: WindowFacts, counts: Mapping[str, int | None], since: Mapping[str, Any] | None
) -> str:
    """Describe the window in the first sentence of a page: state, since when, what readers see, and until when it can
    be repaired."""
    window = facts.rows["window"]
    parts = [describe_state(facts).capitalize() + (f" since {format_second(since['at'])}" if since else "")]
    seen = f"readers see {format_records(window['records'])}"
    off = counts["too_many"]
    if any(finding["evidence"].get("difference") == "rows" for finding in facts.findings):
        seen = "readers see other rows than were certified"
    elif facts.findings and off is not None and off != 0:
        seen += f", {abs(off):,} too {'many' if off > 0 else 'few'}"
    elif facts.findings and off is None and facts.state not in ("certified", "damaged"):
        seen += "; by how many they are wrong is unknown until raw is read"
    parts.append(seen)
    if facts.state not in ("certified", "expired"):
        until = window["log_until"]
        kept = f"until {format_second(until)}" if until else "for ever, or until an unknown time"
        parts.append(f"Kafka holds its records {kept}")
    if window["tries"]:
        parts.append(f"{pluralize(window['tries'], 'repair')} failed")
    return "; ".join(parts) + "."


def _count(context: PipelineContext, facts: WindowFacts) -> dict[str, int | None]:
    """Return the window's records as each tier has them: `lines` landed, `distinct` ones by their offsets, `counted`
    by the aggregates, `certified`; `too_many` is counted less distinct. None: unknown without reading raw."""
    landings: Sequence[Mapping[str, Any]] = facts.rows["landings"]
    window = facts.rows["window"]
    distinct = count_distinct_records(context.ledger, context.name, [facts.window.start]).get(facts.window.start, 0)
    counted = window["records"]
    return {
        "lines": sum(row["records"] for row in landings),
        "distinct": distinct,
        "counted": counted,
        "certified": window["certified_records"],
        "too_many": None if counted is None or distinct is None else counted - distinct,
    }
