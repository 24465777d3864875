"""`onceover pipelines list`: all pipelines."""

from __future__ import annotations

from typing import Any

import typer

from onceover.cli.arguments import AsJson
from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import draw_table, print_json, say
from onceover.config.pipelines import read_valid
from onceover.printable import escape


def add_to(app: typer.Typer) -> None:
    app.command("list", epilog=format_epilog("onceover pipelines list", "onceover pipelines list --json"))(list_)


def list_(json: AsJson = False) -> None:
    """List the pipelines under pipelines/, including those with mistakes."""
    good, mistakes = read_valid()
    wrong = sorted({mistake.file for mistake in mistakes})
    if json:
        rows: list[dict[str, Any]] = [
            {"name": p.name, "topic": p.contract.topic, "window_minutes": p.contract.window_minutes} for p in good
        ]
        print_json({"pipelines": rows, "wrong": wrong})
        return
    if not good and not wrong:
        say("there is no pipeline; write a TOML into pipelines/, its name is the pipeline's")
        return
    shown = [(p.name, p.contract.topic, f"{p.contract.window_minutes} min", p.storage.raw_root) for p in good]
    say(draw_table(["pipeline", "topic", "window", "raw root"], shown))
    for file in wrong:
        say(f"{escape(file)} has mistakes; see `onceover pipelines check`")
