"""`onceover repair`: the repair of a range: windows judged, failed ones rebuilt from raw, their rows read back."""

from __future__ import annotations

from typing import Annotated

from onceover.cli.arguments import DryRun, From, PipelineName, Reason, To, flag, get_user, option, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer
from onceover.cli.ranges import resolve_range_until_now
from onceover.cli.repair_report import describe_planned, describe_result
from onceover.cli.repair_run import carry_out
from onceover.context import open_pipeline
from onceover.detection import detect as detecting
from onceover.detection.plan import plan_repair

Force = Annotated[bool, flag("--force", "Rebuild right and certified windows of the range as well.")]
ByValue = Annotated[
    bool,
    flag(
        "--by-value",
        "Rebuild all windows of the range by their records' Kafka values, not by the columns in their lines; so "
        "does each later repair of them.",
    ),
]


Plan = Annotated[
    str | None, option("--plan", "TOKEN", "Repair what a --dry-run with this token showed, or nothing; else exit 1.")
]


@command(
    "onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --dry-run",
    'onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --reason "INC-42, driver killed"',
    "onceover repair flights --from 2013-01-01T00:00Z --to 2013-01-02T00:00Z --dry-run --json",
    codes={
        0: "every closed window of the range is right: it is confirmed, or nothing was wrong with it",
        FAILED: "a window of the range failed, is blocked, damaged or was revoked, or lost offsets need "
        "`onceover accept-loss`",
        TRY_LATER: "a service does not answer, a batch or another repair holds windows, some closed once "
        "holes were read again, or Kafka's log was not yet compared with what landed; retry later",
    },
)
def repair(
    pipeline: PipelineName,
    start: From,
    end: To,
    dry_run: DryRun = False,
    reason: Reason = None,
    force: Force = False,
    by_value: ByValue = False,
    plan: Plan = None,
) -> Answer:
    """Judge the closed windows of a range and rebuild the wrong ones from raw, including blocked ones.

    A range that ends in the future is judged up to now.

    Right windows are certified from the ledger; Spark starts only if a window is wrong. Published rows are read back;
    a window whose rows differ is revoked. The command may be killed, repeated, or run by two at once: the result is the
    same.
    """
    with open_pipeline(pipeline, "repair") as context:
        window_range = resolve_range_until_now(context, start, end)
        if dry_run:
            planned = plan_repair(context, window_range=window_range, force=force or by_value)
            return Answer(planned, describe_planned(planned))
        why = require_reason(reason, "a repair", ", or --dry-run")
        detection = detecting.detect(
            context,
            who=get_user(),
            why=why,
            window_range=window_range,
            force=force,
            by_value=by_value,
            plan_token=plan,
        )
        result = carry_out(context, window_range, detection)
    return Answer(result, describe_result(result), result.exit_code)
