"""A demo's own folder and stack: cleared before, stopped after, with one demo in it at a time."""

from __future__ import annotations

import fcntl
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from onceover.config.endpoints import home
from onceover.errors import BusyError, OnceoverError, TerminalError, TransientError, UsageError
from onceover_demo.supervised import kill_orphans
from onceover_local.stack import Stack, surroundings
from onceover_local.stack.files import write_whole
from onceover_local.stack.place import Say


def print_early_end(console: Console, what: str, error: OnceoverError, place: Path | None) -> None:
    """Print the failure and what to do next; `place` is the folder of the stack, if one was started."""
    console.print(f"The {what} ended early: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
    if place is not None:
        console.print(
            f"Every process that it started is stopped. Each server's log is in {place / 'log'}. "
            "Fix the cause and run the same command again: it starts from nothing.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def print_part(console: Console) -> Say:
    """Return a function that prints the stack's progress, a line a part."""
    return lambda part, what: console.print(f"  {part:10} {what}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def own_stack(name: str, console: Console) -> Iterator[Stack]:
    """Yield the stack of `.local/NAME`, empty and down, and stop it at the end. `make up`'s stack is left alone.

    Raises BusyError while another demo runs there, UsageError if no demo has made the folder, and any other error of
    the demo as an OnceoverError.
    """
    place = Path(os.environ.get("ONCEOVER_LOCAL") or home() / ".local") / name
    os.environ["ONCEOVER_LOCAL"] = str(place)
    os.environ.pop("ONCEOVER_PIPELINES", None)
    surroundings.leave()  # a demo works on what it starts, never on a real deployment
    if place.exists() and not (place / "stack.lock").exists():
        raise UsageError(
            f"{place} is not an earlier demo's folder, and would be cleared away; move it or set ONCEOVER_LOCAL"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("a") as only_one:
        try:
            fcntl.flock(only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another demo is running in {place}; wait for its end, or set ONCEOVER_LOCAL") from None
        stack = Stack(place)
        kill_orphans(place)  # of an earlier demo that was killed
        stack.remove()
        try:
            yield stack
        except OnceoverError:
            raise
        except KeyboardInterrupt:
            raise TransientError("interrupted by Ctrl-C") from None
        except Exception as error:
            log = place / "log" / "traceback.log"
            write_whole(log, traceback.format_exc())
            summary = " ".join(f"{type(error).__name__}: {error}".split())
            raise TerminalError(f"{summary} (the traceback is in {log})") from error
        finally:
            with console.status("stopping what was started ..."):
                stack.down()
