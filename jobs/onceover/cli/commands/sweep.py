"""`onceover sweep`: the comparison of certified windows with their certificates."""

from __future__ import annotations

from collections.abc import Iterator

from onceover.cli.arguments import DryRun, FromWithTo, PipelineName, ToIfAny
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Occasionally, Part, Table
from onceover.cli.ranges import resolve_range_if_any
from onceover.context import open_pipeline
from onceover.detection.sweep import SweepResult, sweep_pipeline
from onceover.explain.local_times import format_window
from onceover.model.window import format_moment
from onceover.model.wording import pluralize


@command(
    "onceover sweep flights",
    "onceover sweep flights --dry-run --json",
    "onceover sweep flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z",
    codes={
        0: "every certified window still equals its certificate",
        FAILED: "a window differs from its certificate, or a day of quarantine has lost records; it is listed",
        TRY_LATER: "a service does not answer, or a batch in flight did not end in time; retry later",
    },
)
def sweep(pipeline: PipelineName, start: FromWithTo = None, end: ToIfAny = None, dry_run: DryRun = False) -> Answer:
    """Compare certified windows with their certificates: the file's length, the control row, the aggregates' rows.

    Detection skips certified windows, so only a sweep notices rows that were changed by hand or a file that was
    deleted. The next detection judges windows that differ again and has them repaired from raw. Raw itself is not read.
    A sweep of all windows compares the lengths of quarantine files as well.
    """
    progress = Occasionally()
    with open_pipeline(pipeline, "sweep") as context:
        window_range = resolve_range_if_any(context, start, end)
        swept = sweep_pipeline(
            context,
            window_range,
            write=not dry_run,
            say=lambda n, of: progress(f"compared {n:,} of {of:,} certified windows"),
        )
    code = FAILED if swept.differing or swept.quarantine else TRY_LATER if swept.waiting else 0
    return Answer(swept, describe(swept, dry_run), code)


def describe(swept: SweepResult, dry_run: bool) -> Iterator[Part]:
    yield Table(
        swept.differing,
        ("window", lambda each: format_window(each.as_dict())),
        ("no longer as certified", lambda each: ", ".join(map(str, each.findings))),
    )
    differ = pluralize(len(swept.differing), "window") if swept.differing else "none"
    yield f"{pluralize(swept.compared, 'certified window')} compared, {differ} no longer as certified"
    if swept.differing and not dry_run:
        first = format_moment(swept.differing[0].window_start)
        yield (
            f"{pluralize(swept.reopened, 'window')} will be judged again by the next detection; see "
            f"`onceover explain {swept.pipeline} {first}`"
        )
    for each in swept.quarantine:
        yield (
            f"quarantine of {each.day} has {each.file_length or 0:,} of {each.expected_length:,} bytes: bring "
            f"{each.path} back from a backup; if there is none, declare the day expired, for no aggregate counts its "
            "records. That declares lost windows too, for good; see which, then with --reason, not --dry-run: "
            f"`onceover retention {swept.pipeline} --adopt-missing --dry-run`"
        )
    if swept.waiting:
        skipped = pluralize(swept.waiting, "window")
        yield f"{skipped} skipped: a batch in flight may explain them; sweep again afterwards"
