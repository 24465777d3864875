"""`onceover repair`: judge the windows of a range, rebuild the failed ones from raw, read back what was published."""

from __future__ import annotations

import os
import pwd
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName, entry, range_of
from onceover.cli.exit_codes import FAILED, TRY_LATER, epilog
from onceover.cli.output import as_json, progress
from onceover.cli.repair_report import Result, show_plan, show_result
from onceover.cli.spark_entry import run
from onceover.errors import UsageError
from onceover.model.reason import kept

From = Annotated[str, typer.Option("--from", metavar="TIME", help="Start of the first window.")]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="End of the last window; exclusive.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", metavar="", help="Say what a repair would read and change; write nothing.")
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the ledger. A real run needs one.")
]
Force = Annotated[
    bool, typer.Option("--force", metavar="", help="Rebuild certified and right windows of the range as well.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --dry-run",
            'onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --reason "INC-42, driver killed"',
            "onceover repair flights --from 2013-01-01T00:00Z --to 2013-01-02T00:00Z --dry-run --json",
            codes={
                0: "every failed window is confirmed, or nothing was wrong",
                FAILED: "a window failed, is blocked, or was revoked, or a loss waits for `onceover accept-loss`",
                TRY_LATER: "a part does not answer, or windows were left to a batch or a repair that holds them",
            },
        )
    )(repair)


def repair(
    pipeline: PipelineName,
    start: From,
    end: To,
    dry_run: DryRun = False,
    reason: Reason = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Judge the closed windows of a range and rebuild those that are wrong from raw, blocked ones too.

    Right ones are certified from the ledger; Spark starts only if a window is wrong. What was published is read back,
    and revoked if it differs. It may be killed, run twice, or run by two at once: the result is the same.
    """
    from onceover.config.pipelines import find
    from onceover.detection import service as detection_service
    from onceover.repair import service as repair_service

    known = find(pipeline)
    asked = range_of(known, start, end)
    if dry_run:
        planned = detection_service.plan_repair(known.name, window_range=asked, force=force)
        if json:
            as_json(planned)
        else:
            show_plan(planned)
        return
    why = given(reason, "a repair", ", or --dry-run")
    detection = detection_service.detect(known.name, who=who(), why=why, window_range=asked, force=force)
    result = Result(detection)
    if detection.request_id is not None:
        progress(
            f"judged {detection.judged} windows: {detection.certified} certified, {len(detection.failed)} to repair"
            + (f", {len(detection.refills)} holes to read again from Kafka" if detection.refills else "")
            + "; starting Spark"
        )
        ended = run(entry("repair.py", "--pipeline", known.name, "--request", str(detection.request_id)))
        # Even if it ended early: what it has published is read back, so that nothing stands unconfirmed.
        result = Result(detection, repair_service.confirm(known.name, detection.request_id), ended)
    if json:
        as_json(result)
    else:
        show_result(result)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def given(reason: str | None, what: str, otherwise: str = "", option: str = "--reason") -> str:
    """The reason as it is kept. UsageError if there is none that a person could read."""
    found = kept(reason or "")
    if found is None:
        raise UsageError(f'{what} needs a reason, which is kept with it; give {option} "..."{otherwise}')
    return found


def who() -> str:
    """The operating system's user, whatever the environment says; behind sudo, also who called it."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = f"user {number}"
    caller = os.environ.get("SUDO_USER", "")
    return f"{name} (sudo by {caller[:64]})" if number == 0 and caller.isprintable() and caller else name
