"""`onceover restate`: windows of the past rebuilt under the contract in force."""

from __future__ import annotations

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
from onceover.model.wording import pluralize
from onceover.repair.restate import restate_range

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
    with open_pipeline(pipeline, "restate") as context:
        window_range = resolve_range_until_now(context, start, end)
        why = None if dry_run else require_reason(reason, "a restatement", ", or --dry-run")
        if plan is None or dry_run:
            result = preview(context, request_preview(context, window_range, get_user()))
            if dry_run or result["token"] is None:
                return Answer(result, _describe(result), FAILED if result["token"] is None else 0)
            print_progress(f"{result['changing']} of {result['windows']} windows change")
            plan = result["token"]
        restate_range(context, context.require_same_contract(), window_range, get_user(), why or "", plan)
        detection = detecting.detect(context, who=get_user(), why=why or "", window_range=window_range)
        repaired = carry_out(context, window_range, detection)
    return Answer(repaired, describe_result(repaired), repaired.exit_code)


def _describe(result: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the windows that would change, with their rows, and those that are refused, with examples."""
    yield Table(result["rows"], "window", (">rows that differ", "rows_differing"))
    for row in result["rows"]:
        yield from (f"{row['window']} {each}" for each in row["rows"])
    for row in result["refused"]:
        yield f"{row['window']} refused: {row['refused']}"
        yield from (f"{row['window']} {each}" for each in row["examples"])
    yield (
        f"version {result['contract_version']} of the contract changes {result['changing']:,} of "
        f"{pluralize(result['windows'], 'certified window')}"
    )
    if result["uncertified"]:
        yield f"{pluralize(result['uncertified'], 'window')} not certified: they follow when they are repaired"
    if result["refused_windows"]:
        refused = pluralize(result["refused_windows"], "window")
        yield f"{refused} refused; nothing can be restated: choose a range without them, or migrate to another contract"
    else:
        yield f"token: {result['token']}"
