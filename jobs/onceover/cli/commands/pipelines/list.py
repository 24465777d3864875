"""`onceover pipelines list`: all pipelines."""

from __future__ import annotations

from onceover.cli.arguments import NO_PIPELINE
from onceover.cli.command import command
from onceover.cli.output import Answer, Table
from onceover.config.pipelines import read_valid


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
                good, ("pipeline", "name"), ("topic", lambda each: each.contract.topic),
                ("window", lambda each: str(each.contract.windowing)),
                ("raw root", lambda each: each.storage.raw_root), most=None, empty=None if wrong else NO_PIPELINE,
            ),
            *(f"{file} has mistakes; see `onceover pipelines check`" for file in wrong),
        ],
    )  # fmt: skip
