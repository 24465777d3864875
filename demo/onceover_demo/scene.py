"""What the shorter demos share: ingest and the product's own commands, run as a person would, and the checks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from onceover.config.endpoints import address
from onceover.errors import OnceoverError, TransientError
from onceover.ledger.database import upgrade_schema
from onceover_demo import flights, ledger_facts
from onceover_demo.place import own_stack, print_early_end, print_part
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack import Stack

PATIENCE_SECONDS = 900.0


class Scene:
    """A demo with its checks, on an empty stack. `run` raises what goes wrong."""

    def __init__(self, console: Console, stack: Stack) -> None:
        self.console, self.stack, self.checks = console, stack, dict[str, bool]()

    def run(self) -> None:
        """Run every chapter in order."""
        raise NotImplementedError

    def start(self, *parts: str) -> None:
        """Start these parts, and make the ledger and the topic of flights."""
        self.stack.up(parts, say=print_part(self.console))
        upgrade_schema(address("postgres"))
        flights.create_topic(address("kafka"))

    def ingest(self, *, until_closed: bool) -> None:
        """Ingest until every window is closed, or all is read."""
        postgres, log = address("postgres"), self.stack.local / "log" / "ingest.log"
        ingest = SupervisedJob("ingest.py", ["--pipeline", "flights"], log)
        before = ledger_facts.totals(postgres)["landed"]
        try:
            ingest.start()
            if until_closed:
                _wait(lambda: ledger_facts.totals(postgres)["landed"] > before
                      and ledger_facts.is_every_window_closed(postgres), ingest)  # fmt: skip
            else:
                _wait(lambda: "nothing to read" in ingest.read_log(), ingest)
            self.checks["ingest stops cleanly"] = ingest.stop(PATIENCE_SECONDS) == 0
        finally:
            ingest.close()
        log.unlink(missing_ok=True)

    def onceover(self, *arguments: str, code: int = 0) -> Any:
        """Run one of the product's commands and return its JSON. Raises TransientError for any other exit code."""
        shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
        self.console.print(f"[bold]$ onceover {shown}")
        program = str(Path(sys.executable).with_name("onceover"))
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != code:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise TransientError(f"onceover {arguments[0]} ended with {done.returncode}, not {code}: {last}")
        return json.loads(done.stdout)

    def rule(self, title: str) -> None:
        self.console.rule(f"[bold]{title}", align="left")


def _wait(done: Callable[[], bool], ingest: SupervisedJob) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TransientError(
                f"ingest was not done within {PATIENCE_SECONDS:.0f} s; its log ends with: {ingest.read_last_line()}"
            )
        time.sleep(0.5)


def play(name: str, make: Callable[[Console, Stack], Scene]) -> int:
    """Run the scene in `.local/NAME`, a folder of its own, and print its checks; return the exit code."""
    console, checks, place = Console(), dict[str, bool](), None
    try:
        with own_stack(name, console) as stack:
            place = stack.local
            scene = make(console, stack)
            checks = scene.checks
            checks["every chapter was run"] = False
            scene.run()
            checks["every chapter was run"] = True
    except OnceoverError as error:
        print_early_end(console, "demo", error, place)
        return error.exit_code
    for check, right in checks.items():
        console.print(f"{'[green]yes[/]' if right else '[red]NO [/]'} {check}")
    return 0 if checks and all(checks.values()) else 1
