"""`make demo`: exit 0 only if every number is right."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.table import Table

from onceover.errors import OnceoverError
from onceover_demo.place import own_stack, print_early_end
from onceover_demo.story import Story, Told, write_report
from onceover_local.stack import Stack


def main() -> int:
    """Tell the story in `.local/demo`, a place of its own."""
    console, place = Console(), None
    try:
        with own_stack("demo", console) as stack:
            place = stack.local
            told = _tell(console, stack)
    except OnceoverError as error:
        print_early_end(console, "demo", error, place)
        return error.exit_code
    show(console, told)
    console.print(f"report: {stack.local / 'report.json'}", highlight=False, soft_wrap=True)
    return 0 if told.is_right else 1


def _tell(console: Console, stack: Stack) -> Told:
    """The story, and its report, whether or not it comes to its end."""
    started = time.monotonic()
    story = Story(console, stack)
    end = "the story was told to its end"
    story.told.checks[end] = False
    try:
        story.tell()
        story.told.checks[end] = True
    finally:
        story.told.seconds["all"] = round(time.monotonic() - started, 1)
        write_report(story.told, stack.local / "report.json")
    return story.told


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
        table.add_row(label, f"{told.before.get(name, 0):,}", f"{told.after[name]:,}")
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
