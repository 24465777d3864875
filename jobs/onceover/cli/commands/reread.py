"""`onceover reread`: lines that one window's raw has lost, read again from Kafka, and the window's repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from onceover.cli.arguments import DryRun, PipelineName, Reason, WindowStart, get_user, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Part, print_progress
from onceover.cli.spark_entry import make_command, run_entry, run_job
from onceover.context import open_pipeline
from onceover.detection.future_range import resolve_window
from onceover.ledger import read_again
from onceover.model.offsets import OffsetRange
from onceover.model.window import Window, format_moment
from onceover.model.wording import format_records, pluralize
from onceover.repair import confirmation
from onceover.repair.confirmation import Confirmation

_MAX_SHOWN = 10


@command(
    "onceover reread flights 2013-01-05T14:00Z --dry-run",
    'onceover reread flights 2013-01-05T14:00Z --reason "INC-42, a host lost its power"',
    codes={
        0: "raw holds every record that landed in the window, and the window is certified",
        FAILED: "Kafka no longer holds some of what raw lacks, or the repair failed; the reason is shown",
        TRY_LATER: "a service does not answer, ingest still has ranges to read, or the window is open or held",
    },
)
def reread(pipeline: PipelineName, window: WindowStart, dry_run: DryRun = False, reason: Reason = None) -> Answer:
    """Read again from Kafka what one window's raw has lost: lines, unreadable blocks, the file. Then repair it.

    Every line of the window is compared with what landed. The driver, a running ingest or else this command, appends
    what is missing to this window's file; no other window changes. A file with unreadable blocks is replaced by its
    readable part and kept below ROOT/PIPELINE/damaged, while ingest is stopped. The command may be killed and repeated.
    """
    with open_pipeline(pipeline, "reread") as context:
        chosen = resolve_window(context, window)
        why = () if dry_run else (f"--why={require_reason(reason, 'a reread', ', or --dry-run')}",)
        context.require_same_contract()
        if not dry_run:
            context.require_own_root()
        plan: Mapping[str, Any] = run_job(
            "reread.py", "--pipeline", context.name, "--window", str(chosen), f"--who={get_user()}", *why,
            doing=", which compares the window's raw with what landed",
        )  # fmt: skip
        done, code, is_waiting = None, 0, False
        refused: Sequence[tuple[OffsetRange, str]] = ()
        if plan["request_id"] is not None:
            print_progress(f"{pluralize(len(plan['read_again']), 'range')} to read again from Kafka; starting Spark")
            request = str(plan["request_id"])
            code = run_entry(make_command("repair.py", "--pipeline", context.name, "--request", request))
            done = confirmation.confirm(context, plan["request_id"])
            refused = read_again.list_refused(context.ledger, context.name, plan["request_id"])
            is_waiting = bool(read_again.list_wanted(context.ledger, context.name, plan["request_id"]))
    shown = [{"offsets": str(offsets), "why": because} for offsets, because in refused]
    value = {**plan, "dry_run": dry_run, "confirmation": done, "spark_exit_code": code, "refused": shown}
    parts: Iterable[Part] = _describe_plan(context.name, chosen, plan)
    if dry_run:
        return Answer(value, parts)
    waits = "ingest is running and reads the ranges between its batches; some still wait"
    parts = [
        *parts,
        *(f"{each['offsets']} was not read again: {each['why']}" for each in shown[:_MAX_SHOWN]),
        waits if is_waiting else None,
        *_describe_outcome(context.name, chosen, done),
    ]
    return Answer(value, parts, choose_exit_code(done, code, is_waiting=is_waiting))


def choose_exit_code(done: Confirmation | None, spark_code: int, *, is_waiting: bool) -> int:
    """Return 0 only for a window that is certified; `is_waiting` while ingest still has ranges to read for it. Takes no
    confirmation if nothing was requested."""
    if done is not None and done.confirmed:
        return 0
    if is_waiting:
        return TRY_LATER
    if done is not None and (done.failed or done.revoked):
        return FAILED
    if spark_code == TRY_LATER:
        return TRY_LATER
    return FAILED if done is None or spark_code else TRY_LATER


def _describe_plan(name: str, window: Window, plan: Mapping[str, Any]) -> Iterator[Part]:
    if plan["damage"]:
        yield f"the window file cannot be read: {plan['damage']}"
    is_past = plan["request_id"] is not None
    lacking = format_records(plan["lacking_records"])
    yield f"raw of window {window.shown} of {name} {'lacked' if is_past else 'lacks'} {lacking} that landed"
    held = "requested to be read again:" if is_past else "Kafka holds"
    for ranges, what in ((plan["read_again"], held), (plan["gone_from_kafka"], "Kafka no longer holds")):
        yield from (f"{what} {offsets}" for offsets in ranges[:_MAX_SHOWN])
        if len(ranges) > _MAX_SHOWN:
            yield f"and {len(ranges) - _MAX_SHOWN:,} more; --json lists all"


def _describe_outcome(name: str, window: Window, done: Confirmation | None) -> Iterator[Part]:
    end = f"If there is none: `onceover retention {name} --adopt-missing --dry-run`"
    if done is None:
        yield (
            "Nothing was requested: what raw lacks is in neither place. Bring the window file back from a backup, at "
            f"the path that `onceover explain {name} {window}` shows, then run "
            f'`onceover repair {name} --from {window} --to {format_moment(window.end)} --reason "..."`. {end}'
        )
        return
    for _, why in (*done.failed, *done.revoked, *done.left):
        yield f"the window is not repaired: {why}; see `onceover explain {name} {window}`"
    for _, why in done.unneeded:
        yield f"the window needed no repair: {why}"
    if done.confirmed:
        yield f"window {window.shown} is repaired and certified, {pluralize(done.duplicates, 'duplicate')} ignored"
    elif done.lacking:
        yield (
            "What Kafka holds has been read again, and does not make up what landed: bring the window file back from a "
            f"backup. {end}"
        )
    elif not (done.failed or done.revoked or done.left or done.unneeded):
        yield (
            f"window {window} is not closed yet, or its log was not yet compared with what landed; run the command "
            "again once it is"
        )
