"""`onceover restate`: windows of the past rebuilt under the contract in force."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from onceover.audit.service import request_preview
from onceover.cli.arguments import From, PipelineName, Reason, To, flag, get_user, option, require_reason
from onceover.cli.audit_report import carry_out as preview
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Part, Table, print_progress
from onceover.cli.ranges import resolve_range_until_now
from onceover.cli.repair_report import describe_result
from onceover.cli.repair_run import carry_out
from onceover.context import open_pipeline
from onceover.detection import detect as detecting
from onceover.errors import UsageError
from onceover.explain.local_times import add_local_in, format_window
from onceover.model.wording import pluralize
from onceover.repair.restate import is_restated, restate_range

DryRun = Annotated[bool, flag("--dry-run", "Evaluate the windows, and show how their rows would change.")]
Plan = Annotated[
    str | None, option("--plan", "TOKEN", "Restate what a --dry-run with this token showed, or nothing; else exit 1.")
]


@command(
    "onceover restate flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --dry-run",
    'onceover restate flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --reason "delays in minutes, INC-43"',
    codes={
        0: "every closed window of the range is certified under the contract in force; or the dry run refuses none",
        FAILED: "the contract dates records of the range otherwise, or quarantines them, and nothing was changed; or "
        "a window could not be repaired",
        TRY_LATER: "a service does not answer, or a batch or another repair holds windows; retry later",
    },
)
def restate(
    pipeline: PipelineName,
    start: From,
    end: To,
    dry_run: DryRun = False,
    reason: Reason = None,
    plan: Plan = None,
) -> Answer:
    """Put the windows of a range under the contract in force, and rebuild them from raw.

    A migration counts from its cutover on; this is for the records before it: corrected keys and measures, and measures
    that the contract got since. Each record is evaluated first. If the contract gives one another event time, or
    quarantines it, nothing is changed. The replaced rows stay as revisions. The command may be killed and repeated.
    """
    if dry_run and plan is not None:
        raise UsageError("a dry run takes no --plan: it prints the token for one")
    with open_pipeline(pipeline, "restate") as context:
        window_range = resolve_range_until_now(context, start, end)
        why = None if dry_run else require_reason(reason, "a restatement", ", or --dry-run")
        registered = context.require_same_contract()
        if not dry_run and plan is None and is_restated(registered, window_range):
            print_progress("the range was restated before: repairing what is left of it")
        else:
            if plan is None:
                result = preview(context, request_preview(context, window_range, get_user()))
                result = add_local_in(context.windowing, result, "rows", "refused")
                if dry_run or result["token"] is None:
                    return Answer(result, _describe(result), FAILED if result["token"] is None else 0)
                print_progress(f"{result['changing']} of {result['windows']} windows change")
                plan = str(result["token"])
            restate_range(context, registered, window_range, get_user(), why or "", plan.strip())
        detection = detecting.detect(context, who=get_user(), why=why or "", window_range=window_range)
        repaired = carry_out(context, window_range, detection)
    return Answer(repaired, describe_result(repaired), repaired.exit_code)


def _describe(result: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the windows that would change, with their rows, and those that are refused, with examples."""
    yield Table(result["rows"], ("window", format_window), (">rows that differ", "rows_differing"))
    for window in result["rows"]:
        yield from (f"{format_window(window)} {_describe_row(row)}" for row in window["rows"])
    for row in result["refused"]:
        yield f"{format_window(row)} refused: {row['refused']}"
        yield from (f"{format_window(row)} {each}" for each in row["examples"])
    yield (
        f"version {result['contract_version']} of the contract changes {result['changing']:,} of "
        f"{pluralize(result['windows'], 'window')}"
    )
    if result["refused_windows"]:
        refused = pluralize(result["refused_windows"], "window")
        yield f"{refused} refused; nothing can be restated: choose a range without them, or migrate to another contract"
    else:
        yield f"token: {result['token']}"


def _describe_row(row: Mapping[str, Any]) -> str:
    key = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in row["key"].items())
    now, then = row["now"], row["then"]
    if now is None or then is None:
        changes = "a new row" if now is None else "its row goes"
    else:
        changes = ", ".join(
            f"{name} {json.dumps(was, ensure_ascii=False)} -> {json.dumps(then[name], ensure_ascii=False)}"
            for name, was in now.items()
        )
        changes = changes or "what a measure is computed of"
    return f"{key}: {changes}" if key else changes
