"""`make demo`: exit 0 only if every number is right."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from onceover.endpoints import home
from onceover.errors import OnceoverError
from onceover.stack import Stack, surroundings
from onceover_demo.story import Story, Told, write_report
from onceover_demo.supervised import end_left_behind


def main() -> int:
    """Tell the story in `.local/demo`, a place of its own: what `make up` started, and its data, is left alone."""
    console = Console()
    place = Path(os.environ.get("ONCEOVER_LOCAL") or home() / ".local") / "demo"
    os.environ["ONCEOVER_LOCAL"] = str(place)
    os.environ.pop("ONCEOVER_PIPELINES", None)
    surroundings.leave()  # the demo works on what it starts, never on a real deployment
    if place.exists() and not (place / "stack.lock").exists():
        console.print(
            f"[red]{place} is not an earlier demo's folder, and would be cleared away; move it or set ONCEOVER_LOCAL"
        )
        return 2
    place.parent.mkdir(parents=True, exist_ok=True)
    only_one = place.with_suffix(".lock").open("a")  # held until this process ends
    try:
        fcntl.flock(only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        console.print(f"[red]another demo is running in {place}; wait for its end, or set ONCEOVER_LOCAL")
        return 75
    started = time.monotonic()
    stack = Stack(place)
    # An earlier demo that was killed may have left its processes.
    end_left_behind(place)
    stack.down()
    shutil.rmtree(place, ignore_errors=True)
    story = Story(console, stack)
    end = "the story was told to its end"
    story.told.checks[end] = False
    try:
        story.tell()
        story.told.checks[end] = True
    except OnceoverError as error:
        console.print(f"[red]the demo ended early: {error}")
    finally:
        story.told.seconds["all"] = round(time.monotonic() - started, 1)
        write_report(story.told, place / "report.json")
        with console.status("stopping what was started ..."):
            stack.down()
    show(console, story.told)
    console.print(f"report: {place / 'report.json'}")
    return 0 if story.told.is_right else 1


def show(console: Console, told: Told) -> None:
    """Before and after, the findings, the times and the checks."""
    table = Table(title="January 2013, held against the oracle", title_justify="left")
    for column in ("", "before repair", "after"):
        table.add_column(column, justify="left" if not column else "right")
    labels = {
        "wrong_windows": "windows wrong",
        "wrong_rows": "rows wrong",
        "largest_error": "largest error in one row, flights",
        "surplus_flights": "flights counted too many",
    }
    for name, label in labels.items():
        table.add_row(label, f"{told.before.get(name, 0):,}", f"{told.after[name]:,}" if told.after else "?")
    table.add_section()
    table.add_row("windows", "", f"{sum(told.states.values()):,}")
    for state, number in told.states.items():
        table.add_row(f"  {state}", "", f"{number:,}")
    for kind, (ever, now) in told.findings.items():
        table.add_row(f"  with finding: {kind}", f"{ever:,}", f"{now:,}")
    table.add_row("duplicates removed", "", f"{told.confirmation.get('duplicates', 0):,}")
    table.add_row("records that arrived late", f"{told.ingest.get('late', 0):,}", "")
    console.print(table)
    console.print("seconds: " + ", ".join(f"{name} {seconds}" for name, seconds in told.seconds.items()))
    for check, right in told.checks.items():
        console.print(f"{'[green]yes[/]' if right else '[red]NO [/]'} {check}")


if __name__ == "__main__":
    sys.exit(main())
