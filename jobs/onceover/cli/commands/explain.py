"""`onceover explain`: state, findings and history of one window, for a person or as JSON."""

from __future__ import annotations

import typer

from onceover.cli.arguments import AsJson, PipelineName, WindowStart
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.output import print_json
from onceover.cli.ranges import resolve_window
from onceover.cli.root_warning import warn_of_foreign_root
from onceover.cli.window_page import show
from onceover.context import open_pipeline
from onceover.explain.finding_text import describe_finding
from onceover.explain.gather import WindowFacts, gather
from onceover.explain.view import describe_certificate_basis


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover explain flights 2013-01-05T14:00Z",
            "onceover explain flights 2013-01-05T14:00Z --json",
            codes={
                0: "the window was printed, whether it is right or wrong",
                FAILED: "the window is unknown",
            },
        )
    )(explain)


def explain(pipeline: PipelineName, window: WindowStart, json: AsJson = False) -> None:
    """Explain one window: its findings and their evidence, its landings and repairs, and what to do next.

    Reads the ledger, the marker of the raw root, and lengths of files only; changes nothing.
    """
    with open_pipeline(pipeline, "explain") as context:
        chosen = resolve_window(context, window)
        warn_of_foreign_root(context)
        story = gather(context, chosen)
    if json:
        print_json(_to_values(story))
    else:
        show(story)


def _to_values(known: WindowFacts) -> dict[str, object]:
    """Return the window for JSON, with the sentences for people, so that a program may pass them on."""
    landings = known.rows["landings"]
    return {
        "pipeline": known.pipeline,
        "window": known.window,
        "end": known.window.end,
        "state": known.state,
        "findings": [
            {**row, "what": (text := describe_finding(row["kind"], row["evidence"], landings)).what, "how": text.how}
            for row in known.findings
        ],
        "findings_of_pipeline": [{"kind": f.kind, "evidence": f.evidence} for f in known.of_pipeline],
        "judged_now": known.judged is not None,
        "not_judged_because": known.not_judged,
        "file": {"path": known.window_file, "length": known.file_length},
        "parquet": known.parquet,
        "aggregates": known.aggregates,
        "watermark": known.watermark,
        "every_window_closed": known.every_window_closed,
        "certificate_rests_on": known.rows["rests_on"],
        "certificate_rests_on_text": describe_certificate_basis(known),
        "next_steps": [{"text": step.text, "command": step.command} for step in known.steps],
        "ledger": known.rows,
    }
