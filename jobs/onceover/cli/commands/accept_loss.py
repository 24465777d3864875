"""`onceover accept-loss`: the decision about offsets that have expired in Kafka."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import From, PipelineName, Reason, To, get_user, require_reason
from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import say
from onceover.cli.ranges import resolve_range
from onceover.context import open_pipeline
from onceover.detection import holes
from onceover.model.offsets import parse_range
from onceover.model.window import format_moment
from onceover.model.wording import pluralize

Range = Annotated[
    str,
    typer.Argument(
        metavar="RANGE",
        help="GENERATION-PARTITION:START-END, as `onceover holes` prints it; END is exclusive. May span several.",
    ),
]


Unreadable = Annotated[
    bool,
    typer.Option("--unreadable", metavar="", help="Kafka's log holds these offsets, but every read of them fails."),
]


def add_to(app: typer.Typer) -> None:
    app.command(
        "accept-loss",
        epilog=format_epilog(
            "onceover accept-loss flights 1f2e3d4c-0:1200-1300 --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z "
            '--reason "INC-42: retention was an hour"',
            "onceover accept-loss flights 1f2e3d4c-0:1300-1301 --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z "
            '--unreadable --reason "INC-43: a damaged batch"',
        ),
    )(accept_loss)


def accept_loss(
    pipeline: PipelineName,
    offsets: Range,
    start: From,
    end: To,
    reason: Reason = None,
    unreadable: Unreadable = False,
) -> None:
    """Declare offsets lost that have expired in Kafka, and name the windows that may lack their records.

    Ingest's frontier moves past these offsets, so that later windows can close again. With --unreadable, ingest goes on
    after offsets that it waits before; it may run meanwhile. The windows of the range are judged again, and their
    certificates state the loss permanently. This cannot be undone. A range may span thousands of such gaps, as control
    markers leave after a rebuild; what raw or Kafka holds in between stays as it is.
    """
    with open_pipeline(pipeline, "accept-loss") as context:
        span = parse_range(offsets)
        windows = resolve_range(context, start, end)
        why = require_reason(reason, "accepting a loss")
        context.require_same_contract()
        lost, reopened = holes.accept_loss(context, span, windows, get_user(), why, unreadable=unreadable)
    say(
        f"{pluralize(sum(map(len, lost)), 'offset')} of {span.source} accepted as lost"
        f"{f', in {len(lost):,} ranges' if len(lost) > 1 else ''}; "
        f"{pluralize(len(reopened), 'window')} from "
        f"{format_moment(windows.start)} to {format_moment(windows.end)} will be judged again, "
        "with the loss in their certificates"
    )
