"""`onceover repair`: the repair of a range: windows judged, failed ones rebuilt from raw, their rows read back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated

from onceover.cli.arguments import DryRun, From, PipelineName, Reason, To, flag, get_user, option, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, print_progress
from onceover.cli.ranges import resolve_range_until_now
from onceover.cli.repair_report import Result, describe_planned, describe_result
from onceover.cli.spark_entry import make_command, run_entry
from onceover.context import open_pipeline
from onceover.detection import detect as detecting
from onceover.detection.holes import explain_holes
from onceover.detection.plan import plan_repair
from onceover.ledger.windows import list_windows
from onceover.repair import confirmation
from onceover.repair.range_outcome import judge_range

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
        result = Result(detection)
        if detection.request_id is not None:
            print_progress(
                f"judged {detection.judged} windows: {detection.certified} certified, {len(detection.failed)} to repair"
                + (f", {len(detection.read_again)} holes to read again from Kafka" if detection.read_again else "")
                + "; starting Spark"
            )
            code = run_entry(
                make_command("repair.py", "--pipeline", context.name, "--request", str(detection.request_id))
            )
            # Even after a failed job, published rows are read back, so that no window stays unconfirmed.
            done = confirmation.confirm(context, detection.request_id)
            # Holes that were read again have closed since.
            detection = replace(detection, findings=explain_holes(context, detection.findings))
            result = Result(detection, done, code)
        elif not detection.judged:
            windows = list_windows(context.ledger, context.name, None, window_range.start, window_range.end)
            result = replace(result, unjudged=Counter(str(row["state"]) for row in windows))
        result = replace(result, requested=judge_range(context, window_range, result.confirmation))
    return Answer(result, describe_result(result), result.exit_code)
