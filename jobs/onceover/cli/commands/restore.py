"""`onceover restore`: rows that a repair replaced put back, by a person, kept with who and why."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import PipelineName, Reason, WindowStart, given, who
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import say
from onceover.cli.ranges import window_of
from onceover.context import open_pipeline
from onceover.explain.finding_text import format_records, pluralize
from onceover.repair import revisions

Revision = Annotated[
    int | None, typer.Option("--revision", metavar="N", help="Which kept revision; the last one, if left out.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            'onceover restore flights 2013-01-05T14:00Z --reason "the contract was wrong, see INC-42"',
            codes={TRY_LATER: "a repair holds the window"},
        )
    )(restore)


def restore(pipeline: PipelineName, window: WindowStart, revision: Revision = None, reason: Reason = None) -> None:
    """Put rows that a repair replaced back into the aggregates, as a new revision.

    Nothing proves such rows: the window is certified no longer, and it is blocked, so that no scheduled repair undoes
    what you decided. `onceover repair` over its range lifts that.
    """
    with open_pipeline(pipeline, "restore") as context:
        chosen, why = window_of(context, window), given(reason, "a restore")
        known = context.read_registration()
        done = revisions.restore_revision(context.ledger, known, chosen.start, revision, who(), why)
    say(
        f"window {chosen} holds the {pluralize(done.rows, 'row')} of revision {done.source} again, as revision "
        f"{done.revision}: {format_records(done.records)}. It is blocked until somebody repairs it by its range"
    )
