"""`onceover pipelines list`: all pipelines."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.cli.arguments import NO_PIPELINE
from onceover.cli.command import command
from onceover.cli.output import Answer, Table
from onceover.config.pipelines import read_valid


def _format_windows(row: Mapping[str, object]) -> str:
    zone = row["window_zone"]
    return f"{row['window_minutes']} min" + (f" in {zone}" if zone != "UTC" else "")


@command("onceover pipelines list", "onceover pipelines list --json")
def list_() -> Answer:
    """List the pipelines under pipelines/, including those with mistakes."""
    good, mistakes = read_valid()
    wrong = sorted({mistake.file for mistake in mistakes})
    rows = [
        {
            "name": each.name,
            "topic": each.contract.topic,
            "window_minutes": each.contract.window_minutes,
            "window_zone": each.contract.window_zone or "UTC",
            "raw_root": each.storage.raw_root,
        }
        for each in good
    ]
    return Answer(
        {"pipelines": rows, "wrong": wrong},
        [
            Table(
                rows, ("pipeline", "name"), "topic", ("window", _format_windows), "raw root",
                most=None, empty=None if wrong else NO_PIPELINE,
            ),
            *(f"{file} has mistakes; see `onceover pipelines check`" for file in wrong),
        ],
    )  # fmt: skip
