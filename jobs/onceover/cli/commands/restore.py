"""`onceover restore`: a person's return to the rows that a repair replaced, kept with name and reason."""

from __future__ import annotations

from typing import Annotated

from onceover.cli.arguments import PipelineName, Reason, WindowStart, get_user, option, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import TRY_LATER
from onceover.cli.output import Answer
from onceover.context import open_pipeline
from onceover.detection.future_range import resolve_window
from onceover.explain.actions import describe_restore
from onceover.repair import revisions

Revision = Annotated[int | None, option("--revision", "N", "Number of a kept revision. Default: the last one.")]


@command(
    'onceover restore flights 2013-01-05T14:00Z --reason "the contract was wrong, see INC-42"',
    codes={TRY_LATER: "a repair holds the window; retry later"},
)
def restore(pipeline: PipelineName, window: WindowStart, revision: Revision = None, reason: Reason = None) -> Answer:
    """Put rows that a repair replaced back into the aggregates, as a new revision.

    No proof exists for such rows: the window loses its certificate and is blocked, so that no scheduled repair undoes
    your decision. To rebuild the window again, run `onceover repair` over its range.
    """
    with open_pipeline(pipeline, "restore") as context:
        chosen, why = resolve_window(context, window), require_reason(reason, "a restore")
        context.require_own_root()
        known = context.read_registration()
        done = revisions.restore_revision(context.ledger, known, chosen.start, revision, get_user(), why)
    return Answer(done, [describe_restore(chosen, done)])
