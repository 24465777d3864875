"""`onceover quarantine PIPELINE release`: records that fit a window now, landed by `jobs/release.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from onceover.cli.arguments import get_user, require_reason
from onceover.cli.output import Answer, Part, Table
from onceover.cli.spark_entry import run_job
from onceover.model.wording import pluralize


def release(pipeline: str, day: date | None, reason: str | None, why: str | None, dry_run: bool) -> Answer:
    """Release the records of that day whose reason contains this text; without day and reason, of all days."""
    text = "a dry run" if dry_run else require_reason(why, "a release", ", or --dry-run", option="--why")
    chosen = [f"--day={day}"] if day else []
    chosen += [] if reason is None else [f"--reason={reason}"]
    chosen += ["--dry-run"] if dry_run else []
    done = run_job("release.py", f"--pipeline={pipeline}", f"--who={get_user()}", f"--why={text}", *chosen)
    return Answer({**done, "dry_run": dry_run}, _describe(done, dry_run))


def _describe(done: Mapping[str, Any], dry_run: bool) -> Iterator[Part]:
    windows, left = done["windows"], list(done["left"].items())
    yield Table(windows, "window", ">records")
    yield Table(left, (">records", 1), ("stay, for", 0), most=None)
    if not windows:
        none = f"version {done['version']} of the contract has no window for any of them"
        yield none if left else "nothing in quarantine matches"
        return
    would = "would land" if dry_run else "landed"
    yield f"{pluralize(done['records'], 'record')} {would} in {pluralize(len(windows), 'window')}"
    if not dry_run:
        yield "The DAG repair_failed_windows judges these windows again at its next run, `onceover repair` at once"
