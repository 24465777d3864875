"""Each pipeline has one process, whatever the others do."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from onceover.ingest.supervisor import Supervisor

UNTIL_SIGTERM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("finished its batch"), sys.exit(0)))
print("started")
time.sleep(60)
"""
PROGRAMS = {
    "good": UNTIL_SIGTERM,
    "other": UNTIL_SIGTERM,
    "bad": "raise SystemExit('no such topic')",
    "changing": "import os; print('begun'); raise SystemExit(f'process {os.getpid()}')",
}


class Lines(list[str]):
    def wait_for(self, holds: Callable[[list[str]], bool]) -> None:
        end = time.monotonic() + 20
        while not holds(self):
            assert time.monotonic() < end, list(self)
            time.sleep(0.01)


@contextmanager
def run_supervisor(names: list[str]) -> Iterator[Lines]:
    """A supervisor of these pipelines; a name may be added or removed. It is stopped at the end, and has returned."""
    lines, stop = Lines(), threading.Event()
    supervisor = Supervisor(
        lambda: list(names), lambda name: [sys.executable, "-c", PROGRAMS[name]], lines.append, stop, first_pause=0.01
    )
    thread = threading.Thread(target=supervisor.run, args=(0.01,))
    thread.start()
    try:
        yield lines
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


def test_supervisor_stops_each_process_with_sigterm() -> None:
    with run_supervisor(["good", "other"]) as lines:
        lines.wait_for(lambda said: {"good | started", "other | started"} <= set(said))

    assert sorted(lines) == sorted(
        f"{name} | {what}" for name in ("good", "other") for what in ("started", "finished its batch")
    )


def test_supervisor_restarts_a_failed_pipeline_beside_others() -> None:
    ended = "bad | ingest ended with exit code 1; it starts again in 0 s"
    with run_supervisor(["bad", "good"]) as lines:
        lines.wait_for(lambda said: {ended, "good | started"} <= set(said))

    assert lines.count("good | started") == 1


def test_supervisor_reports_ends_that_are_alike_once() -> None:
    with run_supervisor(["bad", "changing"]) as lines:
        lines.wait_for(
            lambda said: (
                sum("changing | process" in line for line in said) >= 5
                and any("bad | ingest ended in the same way" in line for line in said)
            )
        )

    changing = [line for line in lines if line.startswith("changing")]
    begun = [changing[place - 1] for place, line in enumerate(changing) if "process" in line]
    assert set(begun) == {"changing | begun"}, "what differs is shown with what comes before it"
    assert [line for line in lines if line.startswith("bad")] == [
        "bad | no such topic",
        "bad | ingest ended with exit code 1; it starts again in 0 s",
        "bad | ingest ended in the same way; it starts again, after 60 s at most, and the log shows an end that "
        "differs, or each 60th",
    ]


def test_supervisor_repeats_an_end_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onceover.ingest.supervisor._REMINDER", 3)
    with run_supervisor(["bad"]) as lines:
        lines.wait_for(lambda said: said.count("bad | no such topic") >= 3)

    assert sum("exit code 1" in line for line in lines) >= 2
    assert sum("in the same way" in line for line in lines) == 1


def test_supervisor_starts_a_pipeline_added_later() -> None:
    names: list[str] = []
    with run_supervisor(names) as lines:
        names.append("good")
        lines.wait_for(lambda said: "good | started" in said)


def test_supervisor_restarts_no_pipeline_that_was_removed() -> None:
    names = ["bad", "good"]
    with run_supervisor(names) as lines:
        lines.wait_for(lambda said: "bad | no such topic" in said)
        names.remove("bad")
        lines.wait_for(lambda said: "good | started" in said)
        threads = [thread for thread in threading.enumerate() if thread.name == "ingest bad"]
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
