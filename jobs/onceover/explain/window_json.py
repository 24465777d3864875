"""One window as values for JSON, with the sentences for people, so that a program may pass them on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.explain.finding_text import describe_finding
from onceover.explain.gather import WindowFacts
from onceover.explain.window_text import describe_certificate_basis, describe_notes, describe_verdict


def describe_window(known: WindowFacts) -> dict[str, object]:
    """Return all of a window's facts."""
    return {
        "pipeline": known.pipeline,
        "window": known.window,
        "end": known.window.end,
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
        "watermark": known.watermark,
        "every_window_closed": known.every_window_closed,
        "certificate_rests_on": known.rows["rests_on"],
        "certificate_rests_on_text": describe_certificate_basis(known),
        "next_steps": [{"text": step.text, "command": step.command} for step in known.steps],
        "ledger": known.rows,
    }


def describe_row(row: Mapping[str, Any], known: WindowFacts) -> dict[str, object]:
    """Return a finding's row with its words, `what` and `how`."""
    text = describe_finding(row["kind"], row["evidence"], known.rows["landings"])
    return {**row, "what": text.what, "how": text.how}
