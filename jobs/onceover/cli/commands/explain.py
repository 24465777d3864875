"""`onceover explain`: state, findings and history of one window, for a person or as JSON."""

from __future__ import annotations

from onceover.cli.arguments import PipelineName, WindowStart
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer
from onceover.cli.root_warning import warn_of_foreign_root
from onceover.cli.window_page import describe
from onceover.context import open_pipeline
from onceover.detection.future_range import resolve_window
from onceover.explain.gather import gather
from onceover.explain.page.window import describe_shortly, describe_window


@command(
    "onceover explain flights 2013-01-05T14:00Z",
    "onceover explain flights 2013-01-05T14:00Z --json",
    codes={
        0: "the window was printed, whether it is right or wrong",
        FAILED: "the window is unknown",
    },
)
def explain(pipeline: PipelineName, window: WindowStart) -> Answer:
    """Explain one window: its findings and their evidence, its landings and repairs, and what to do next.

    Reads the ledger, the marker of the raw root, and lengths of files only; changes nothing.
    """
    with open_pipeline(pipeline, "explain") as context:
        chosen = resolve_window(context, window)
        warn_of_foreign_root(context)
        facts = gather(context, chosen)
        shown = describe_shortly(context, facts)
    return Answer(describe_window(facts), describe(shown))
