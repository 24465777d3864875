"""One ingest process for each pipeline that has a TOML: started, restarted after an end, stopped together."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

LOOK_SECONDS: Final = 5.0
"""How often the supervisor looks for new TOMLs."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""The longest wait before a restart; a process that ran for so long is restarted at once."""
_REMINDER: Final = 60
"""Of so many processes that end alike, one is reported: about one an hour."""
_COMPARED_LINES: Final = 20
"""The most lines of a process that the next one is compared with."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a process: its exit code, and the first lines that it had printed."""

    code: int = 0
    lines: Sequence[str] = ()


@dataclass(slots=True)
class Supervisor:
    """A runner of `command(pipeline)` for each of `names()`, until `stop` is set. Each line that a process prints goes
    to `say`, behind its pipeline's name. No pipeline waits for another one, or ends with it."""

    names: Callable[[], Collection[str]]
    command: Callable[[str], Sequence[str]]
    say: Callable[[str], None]
    stop: threading.Event
    first_pause: float = 1.0
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def run(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Run until `stop` is set, then send SIGTERM to each process and wait for its end."""
        threads: dict[str, threading.Thread] = {}
        try:
            while not self.stop.is_set():
                for name in self.names():
                    if name not in threads or not threads[name].is_alive():
                        threads[name] = threading.Thread(target=self._keep, args=(name,), name=f"ingest {name}")
                        threads[name].start()
                self.stop.wait(look_seconds)
        finally:
            self.stop.set()
            with self._starting:
                for process in self._running.values():
                    process.terminate()
            for thread in threads.values():
                thread.join()

    def _keep(self, name: str) -> None:
        """Restart the pipeline's process while its TOML exists, after a pause that doubles each time. Of processes that
        end alike, one after another, the first two are reported, and then one in `_REMINDER`."""
        pause, last, alike = self.first_pause, _End(), 0
        while name in self.names():
            began = time.monotonic()
            end = self._run(name, last.lines if (alike + 1) % _REMINDER else ())
            if self.stop.is_set():
                return
            if time.monotonic() - began >= LONGEST_PAUSE_SECONDS:
                pause, end = self.first_pause, _End(end.code)
            alike = alike + 1 if end == last and 0 < len(end.lines) < _COMPARED_LINES else 0
            last = end
            if alike % _REMINDER == 0:
                self.say(f"{name} | ingest ended with exit code {end.code}; it starts again in {pause:.0f} s")
            elif alike == 1:
                self.say(
                    f"{name} | ingest ended in the same way; it starts again, after {LONGEST_PAUSE_SECONDS:.0f} s at "
                    f"most, and the log shows an end that differs, or each {_REMINDER}th"
                )
            if self.stop.wait(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _run(self, name: str, known: Sequence[str]) -> _End:
        """Run the pipeline's process to its end. The lines with which it begins are shown only once one differs from
        those of the process before it, which are `known`."""
        with self._starting:  # no process starts once those that run have got SIGTERM
            if self.stop.is_set():
                return _End()
            # A process group of its own: a terminal's Ctrl-C would else reach its JVM.
            process = self._running[name] = subprocess.Popen(
                self.command(name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        lines: list[str] = []
        said = 0
        with process:
            for line in map(str.rstrip, process.stdout or ()):
                if len(lines) == _COMPARED_LINES:
                    self.say(f"{name} | {line}")
                    continue
                lines.append(line)
                if said or len(lines) == _COMPARED_LINES or lines != list(known[: len(lines)]):
                    for each in lines[said:]:
                        self.say(f"{name} | {each}")
                    said = len(lines)
        return _End(process.returncode, tuple(lines))
