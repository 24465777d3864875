"""`onceover quarantine PIPELINE release`: records that fit a window now, landed by `jobs/release.py`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from onceover.cli.arguments import get_user, require_reason
from onceover.cli.output import draw_table, print_json, print_progress, say
from onceover.cli.spark_entry import make_command, read_result
from onceover.model.wording import pluralize

_MOST_SHOWN = 40


def release(pipeline: str, day: date | None, reason: str | None, why: str | None, dry_run: bool, json: bool) -> None:
    """Release the records of that day whose reason contains this text; without day and reason, of all days."""
    text = "a dry run" if dry_run else require_reason(why, "a release", ", or --dry-run", option="--why")
    print_progress("starting Spark")
    chosen = [f"--day={day}"] if day else []
    chosen += [] if reason is None else [f"--reason={reason}"]
    chosen += ["--dry-run"] if dry_run else []
    done = read_result(
        make_command("release.py", f"--pipeline={pipeline}", f"--who={get_user()}", f"--why={text}", *chosen)
    )
    if json:
        print_json({**done, "dry_run": dry_run})
    else:
        _show(done, dry_run)


def _show(done: Mapping[str, Any], dry_run: bool) -> None:
    windows, left = done["windows"], done["left"]
    if windows:
        say(draw_table(["window", ">records"], [(row["window"], row["records"]) for row in windows[:_MOST_SHOWN]]))
    if len(windows) > _MOST_SHOWN:
        say(f"and {len(windows) - _MOST_SHOWN:,} more; --json lists all")
    if left:
        say(draw_table([">records", "stay, for"], [(n, why) for why, n in left.items()]))
    if not windows:
        say(f"version {done['version']} of the contract has no window for any of them" if left
            else "nothing in quarantine matches")  # fmt: skip
        return
    would = "would land" if dry_run else "landed"
    say(f"{pluralize(done['records'], 'record')} {would} in {pluralize(len(windows), 'window')}")
    if not dry_run:
        say("The DAG repair_failed_windows judges these windows again at its next run, `onceover repair` at once")
