"""`onceover accept-loss`: the decision about offsets that have expired in Kafka."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import From, PipelineName, Reason, To, flag, get_user, require_reason
from onceover.cli.command import command
from onceover.cli.output import Answer
from onceover.cli.ranges import resolve_range
from onceover.context import open_pipeline
from onceover.detection import holes
from onceover.explain.actions import describe_accepted_loss
from onceover.model.offsets import parse_range

Range = Annotated[
    str,
    typer.Argument(
        metavar="RANGE",
        help="GENERATION-PARTITION:START-END, as `onceover holes` prints it; END is exclusive. May span several.",
    ),
]


Unreadable = Annotated[bool, flag("--unreadable", "Kafka's log holds these offsets, but every read of them fails.")]


@command(
    "onceover accept-loss flights 1f2e3d4c-0:1200-1300 --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z "
    '--reason "INC-42: retention was an hour"',
    "onceover accept-loss flights 1f2e3d4c-0:1300-1301 --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z "
    '--unreadable --reason "INC-43: a damaged batch"',
)
def accept_loss(
    pipeline: PipelineName,
    offsets: Range,
    start: From,
    end: To,
    reason: Reason = None,
    unreadable: Unreadable = False,
) -> Answer:
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
    said = describe_accepted_loss(span.source, lost, reopened, windows)
    return Answer({"lost": lost, "reopened": reopened}, [said])
