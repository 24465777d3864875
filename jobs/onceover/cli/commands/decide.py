"""`onceover decide`: a person's choice among several contents of one ID, kept with name and reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from onceover.cli.arguments import PipelineName, Reason, WindowStart, get_user, require_reason
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.output import draw_table, say
from onceover.cli.ranges import resolve_window
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.explain.contents import list_contested
from onceover.explain.gather import gather
from onceover.model.conflict import MOST_SHOWN
from onceover.model.record import encode_id
from onceover.model.window import Window, format_moment
from onceover.model.wording import pluralize
from onceover.repair.decide import ALL
from onceover.repair.decide import decide as decide_conflicts

RecordId = Annotated[
    str, typer.Argument(metavar="ID", help="A record's ID, as `onceover explain` prints it, or `all` of the window.")
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="HASH",
        help="Hash of the content to count, or its first 4 digits or more; for all: `newest` is what Kafka's log held "
        "when the contents were compared, `oldest` what it held before. Without it the command shows the contents and "
        "decides nothing.",
    ),
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover decide flights 2013-01-05T14:00Z all",
            "onceover decide flights 2013-01-05T14:00Z 1f2e3d4c-00000-0000000000000001200 "
            '--keep 00112233445566778899aabbccddeeff --reason "the leader that lost its log had the test data"',
            'onceover decide flights 2013-01-05T14:00Z all --keep newest --reason "producers sent them again"',
            codes={FAILED: "of some IDs it is not known which content is the newest; they are listed, and left"},
        )
    )(decide)


def decide(
    pipeline: PipelineName, window: WindowStart, record: RecordId, keep: Keep = None, reason: Reason = None
) -> None:
    """Choose which of several contents of one record ID counts; the next repair uses the choice.

    One ID has several contents if Kafka's log was truncated and its offsets were written again. The other contents
    stay in raw, and the certificate names the decision. A later decision about the same ID replaces this one. The
    contents may belong to several windows: the decision holds for all of them.
    """
    with open_pipeline(pipeline, "decide") as context:
        chosen = resolve_window(context, window)
        if keep is None:
            _show(context, chosen, record.strip())
            return
        why = require_reason(reason, "a decision")
        done = decide_conflicts(context, chosen, record, keep, get_user(), why)
    if done.ids:
        counts = (
            f"the {keep} content of {pluralize(done.ids, 'ID')} counts"
            if record.strip() == ALL
            else f"content {keep} of {record} counts"
        )
        say(f"{counts}. {_advise(context.name, chosen, done.windows)}")
    if done.left:
        say(
            f"{pluralize(len(done.left), 'ID')} left: which content is the {keep} is not known. Decide each by "
            f'`onceover decide {context.name} {chosen} ID --keep HASH --reason "..."`:'
        )
        for each in done.left[:MOST_SHOWN]:
            where = encode_id(each.source, each.offset).decode()
            say(f"  {where}: {' or '.join(content for content, _ in each.contents)}")
        if len(done.left) > MOST_SHOWN:
            say(f"  and {len(done.left) - MOST_SHOWN:,} more, which `all` lists once these are decided")
        raise typer.Exit(FAILED)


def _show(context: PipelineContext, window: Window, record: str) -> None:
    """Print the contents that raw holds of the window's conflicts, or of one of them."""
    found = list_contested(context, gather(context, window).findings, with_text=True)
    rows = [(each.id, content) for each in found if record in (ALL, each.id) for content in each.contents]
    if not rows:
        raise UsageError(
            f"window {window} of {context.name} has no conflict{'' if record == ALL else f' of {record}'} whose "
            f"contents were compared; `onceover explain {context.name} {window}` says what it has"
        )
    say(
        draw_table(
            ["id", "hash", "event time", "content"],
            ((name, each.hash, each.event_time, each.text or "not found in raw") for name, each in rows),
        )
    )
    say(f'To decide: onceover decide {context.name} {window} ID --keep HASH --reason "..."', whole=True)


def _advise(pipeline: str, window: Window, windows: Sequence[datetime]) -> str:
    start, end = windows[0], Window.at(windows[-1], window.minutes).end
    return (
        f"Now repair {pluralize(len(windows), 'window')}: onceover repair {pipeline} --from {format_moment(start)} "
        f'--to {format_moment(end)} --reason "..."'
    )
