"""`onceover requests`: the repairs that were requested, how far they are, and the cancellation of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from onceover.cli.arguments import PipelineName, Reason, flag, get_user, option, require_reason
from onceover.cli.command import command
from onceover.cli.output import Answer, Table
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.ledger.repair_requests import cancel_request, list_requests
from onceover.model.wording import pluralize

All = Annotated[bool, flag("--all", "List requests that have ended too, the last 1,000.")]
Cancel = Annotated[int | None, option("--cancel", "REQUEST", "Cancel the windows of this request that still wait.")]


@command(
    "onceover requests flights",
    "onceover requests flights --all --json",
    'onceover requests flights --cancel 12 --reason "the wrong month"',
)
def requests(pipeline: PipelineName, every: All = False, cancel: Cancel = None, reason: Reason = None) -> Answer:
    """List a pipeline's repair requests with windows that wait, or cancel one.

    running: a repair works on its windows. waiting: none does. cancelled, ended: no window of it waits.

    A cancelled request keeps what it has repaired, and a repair that runs finishes the group of windows that it holds;
    the rest stays as it is. The schedule requests windows that are wrong again.
    """
    if cancel is None and reason is not None:
        raise UsageError("--reason is for --cancel; give the number of the request to cancel")
    with open_pipeline(pipeline, "requests") as context:
        context.read_registration()
        if cancel is not None:
            why = require_reason(reason, "a cancellation", "")
            number = cancel_request(context.ledger, context.name, cancel, get_user(), why)
        rows = list_requests(context.ledger, context.name, every=every, only=cancel)
    if cancel is None:
        return Answer(rows, [describe(rows)])
    (row,) = rows
    held = f"{pluralize(row['held'], 'window')} of it are being repaired now; a repair finishes what it holds."
    done = f"request {cancel}: {pluralize(number, 'window')} cancelled, {row['repaired']:,} repaired before"
    return Answer({**row, "cancelled_windows": number}, [done, held if row["held"] else None])


def describe(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        rows,
        (">request", "request_id"), "state", ">windows", ">repaired", (">failed", lambda row: row["failed"] or None),
        (">waiting", lambda row: row["waiting"] or None), ("requested", "created_at"), ("by", "who"),
        ("reason", _format_reason), most=None, empty="no request waits; --all lists those that have ended",
    )  # fmt: skip


def _format_reason(row: Mapping[str, Any]) -> str:
    cancelled = f" (cancelled by {row['cancelled_by']}: {row['cancelled_why']})" if row["cancelled_at"] else ""
    return f"{row['why']}{cancelled}"
