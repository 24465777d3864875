"""Counts, by pid, of the TOMLs that processes read and their connections to the ledger, by hooks of Python and psycopg.

The counter is a `sitecustomize`, which every Python process below a command loads before any of its own code.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

_COUNTER = """
import os
import sys

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

OUT = os.open({counts!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
LEDGER = conninfo_to_dict(os.environ["ONCEOVER_POSTGRES"])["dbname"]
OF_THREADS = ("onceover heartbeat", "onceover claims")


def note(what):
    os.write(OUT, f"{{os.getpid()}} {{what}}\\n".encode())


def opened(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".toml") and {pipelines!r} in str(arguments[0]):
        note("toml")


def connect(cls, conninfo="", **options):
    at = conninfo_to_dict(make_conninfo(conninfo, **{{k: options[k] for k in options if k == "application_name"}}))
    if at["dbname"] == LEDGER and at.get("application_name") not in OF_THREADS:
        note("ledger")
    return real(conninfo, **options)


sys.addaudithook(opened)
real = psycopg.Connection.connect
psycopg.Connection.connect = classmethod(connect)
psycopg.connect = psycopg.Connection.connect
"""


class OpenCounts:
    """Counts of every process since the start, or since `forget`."""

    def __init__(self, counts: Path) -> None:
        self._counts = counts

    def forget(self) -> None:
        self._counts.write_text("")

    def list_by_process(self) -> list[tuple[int, int]]:
        """Return TOML reads and ledger connections of each process that made any."""
        by_pid: dict[str, Counter[str]] = {}
        for line in self._counts.read_text().splitlines():
            pid, what = line.split()
            by_pid.setdefault(pid, Counter())[what] += 1
        return [(counts["toml"], counts["ledger"]) for counts in by_pid.values()]


def count_opens(folder: Path, environment: pytest.MonkeyPatch, postgres: str, pipelines: Path) -> OpenCounts:
    """Make every Python process started from here on count."""
    folder.mkdir()
    counts = folder / "counts"
    counts.touch()
    (folder / "sitecustomize.py").write_text(_COUNTER.format(counts=str(counts), pipelines=str(pipelines)))
    environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))))
    environment.setenv("ONCEOVER_POSTGRES", postgres)
    return OpenCounts(counts)
