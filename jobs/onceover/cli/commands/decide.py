"""`onceover decide`: a person's choice among several contents of one ID, kept with name and reason."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import PipelineName, Reason, WindowStart, get_user, require_reason
from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import say
from onceover.cli.ranges import resolve_window
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.ledger import decisions
from onceover.model.conflict import Decision
from onceover.model.line import parse_id
from onceover.model.window import format_moment

RecordId = Annotated[str, typer.Argument(metavar="ID", help="A record's ID, as `onceover explain` prints it.")]
Keep = Annotated[str, typer.Option("--keep", metavar="HASH", help="Hash of the content to count.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover decide flights 2013-01-05T14:00Z 1f2e3d4c-00000-0000000000000001200 "
            '--keep 00112233445566778899aabbccddeeff --reason "the leader that lost its log had the test data"',
        )
    )(decide)


def decide(pipeline: PipelineName, window: WindowStart, record: RecordId, keep: Keep, reason: Reason = None) -> None:
    """Choose which of several contents of one record ID counts; the next repair uses the choice.

    One ID has several contents if Kafka's log was truncated and its offsets were written again. The other contents
    stay in raw, and the certificate names the decision. A later decision about the same ID replaces this one.
    """
    with open_pipeline(pipeline, "decide") as context:
        chosen, why = resolve_window(context, window), require_reason(reason, "a decision")
        source, offset = parse_id(record.strip().encode("ascii", "replace"))
        if len(keep) != 32 or set(keep) - set("0123456789abcdef"):
            raise UsageError("--keep takes the 32 hex digits of a content's hash; `onceover explain` shows them")
        context.require_own_root()
        context.read_registration()
        decisions.record_decision(
            context.ledger, context.name, chosen.start, Decision(source, offset, keep), get_user(), why
        )
    say(
        f"content {keep} of {record} counts. Now repair the window: "
        f'onceover repair {context.name} --from {chosen} --to {format_moment(chosen.end)} --reason "..."'
    )
