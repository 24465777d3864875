"""The entry of `make demo`: exit 0 only if every number is right."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from onceover.config.endpoints import PIPELINES, home
from onceover.errors import OnceoverError
from onceover_demo.place import own_stack, print_early_end
from onceover_demo.story import DemoResult, Story, write_report
from onceover_local.stack import Stack
from onceover_local.stack.files import write_whole


def main() -> int:
    """Run the demo in `.local/demo`, a folder of its own."""
    parser = argparse.ArgumentParser(prog="onceover_demo", description=__doc__)
    parser.add_argument("--raw", choices=("hdfs", "hbase"), default="hdfs", help="the store of raw")
    raw_store = parser.parse_args().raw
    console, place = Console(), None
    try:
        with own_stack("demo", console) as stack:
            place = stack.local
            os.environ[PIPELINES] = str(_write_pipeline(place, raw_store))
            result = _run(console, stack, raw_store)
    except OnceoverError as error:
        print_early_end(console, "demo", error, place)
        return error.exit_code
    show(console, result)
    console.print(f"report: {stack.local / 'report.json'}", highlight=False, soft_wrap=True)
    return 0 if result.is_right else 1


def _write_pipeline(place: Path, raw_store: str) -> Path:
    """Write the pipeline with that raw store into a folder of the demo's own, and return the folder."""
    folder = place / "pipelines"
    text = (home() / "pipelines" / "flights.toml").read_text()
    write_whole(folder / "flights.toml", text.replace('raw_store = "hdfs" ', f'raw_store = "{raw_store}" '))
    return folder


def _run(console: Console, stack: Stack, raw_store: str) -> DemoResult:
    """Run every chapter, and write the report even if a chapter fails."""
    started = time.monotonic()
    story = Story(console, stack, raw_store)
    end = "every chapter was run"
    story.result.checks[end] = False
    try:
        story.run()
        story.result.checks[end] = True
    finally:
        story.result.seconds["all"] = round(time.monotonic() - started, 1)
        write_report(story.result, stack.local / "report.json")
    return story.result


def show(console: Console, result: DemoResult) -> None:
    """Print the numbers before and after the repair, the findings, the times and the checks."""
    table = Table(title="January 2013, compared with the oracle", title_justify="left")
    for column in ("", "before repair", "after"):
        table.add_column(column, justify="left" if not column else "right")
    labels = {
        "wrong_windows": "windows wrong",
        "wrong_rows": "rows wrong",
        "largest_error": "largest error in one row, flights",
        "surplus_flights": "flights counted too many",
    }
    for name, label in labels.items():
        table.add_row(label, f"{result.before.get(name, 0):,}", f"{result.after[name]:,}")
    table.add_section()
    table.add_row("windows", "", f"{sum(result.states.values()):,}")
    for state, number in result.states.items():
        table.add_row(f"  {state}", "", f"{number:,}")
    for kind, (ever, now) in result.findings.items():
        table.add_row(f"  with finding: {kind}", f"{ever:,}", f"{now:,}")
    table.add_row("duplicates removed", "", f"{result.confirmation.get('duplicates', 0):,}")
    table.add_row("records that arrived late", f"{result.ingest.get('late', 0):,}", "")
    console.print(table)
    console.print("seconds: " + ", ".join(f"{name} {seconds}" for name, seconds in result.seconds.items()))
    for check, right in result.checks.items():
        console.print(f"{'[green]yes[/]' if right else '[red]NO [/]'} {check}")


if __name__ == "__main__":
    sys.exit(main())
