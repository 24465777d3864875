"""The ledger after a month, a year and three years of a batch every five seconds over eight Kafka partitions: its size,
and the times of a landing, and of commands as a person runs them.

Kafka keeps a week (a day with BENCH=quick); what it dropped is rolled up, as `onceover ledger roll-up` does it every
day. The last rows compare a day as ingest wrote it with the same day rolled up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import ledger_history
from bench.ledger_history import History
from bench.ledger_writer import Writer
from bench.table import Row, middle, runs
from onceover.config.endpoints import address
from onceover.config.pipelines import find
from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection, connect
from onceover.raw.hdfs import connect_hdfs
from onceover.raw.layout import Layout

NAME = "history"
DAY = 288  # windows
DAYS = {"a month": 30, "a year": 365, "three years": 1095}
QUICK_DAYS = {"a month": 30, "a year": 365}
GOAL = 1.5
TOML = f"""
[contract]
topic = "{NAME}"
window_minutes = 5
format = "json"
schema = "at BIGINT, kind STRING"
required = ["at"]
event_time = "to_timestamp(value.at)"
[contract.keys]
kind = "value.kind"
[contract.measures]
events = {{ count = "*" }}
[storage]
raw_root = "/bench/ledger"
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A ledger of `days` days: its size in MiB, seconds by work, and whether every answer was right."""

    days: int
    mib: float
    seconds: dict[str, float]
    correct: bool


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    quick = os.environ.get("BENCH") == "quick"
    kept_days = 1 if quick else 7
    with tempfile.TemporaryDirectory() as folder, connect(address("postgres"), "onceover bench") as connection:
        Path(folder, f"{NAME}.toml").write_text(TOML)
        os.environ["ONCEOVER_PIPELINES"] = folder
        measured = {
            label: _measure(connection, days, kept_days) for label, days in (QUICK_DAYS if quick else DAYS).items()
        }
        whole, joined = (_build_size(connection, History(NAME, DAY, rolled_hours=hours)) for hours in (0, 23))
    (first, least), *_, (last, most) = measured.items()
    rows = [
        Row(f"{work}, after {last}", most.seconds[work], seconds, f"the same after {first}", "s",
            most.seconds[work] / seconds, f"{GOAL}", most.seconds[work] / seconds <= GOAL,
            least.correct and most.correct, runs())
        for work, seconds in least.seconds.items()
    ]  # fmt: skip
    rows.append(Row("23 hours of 24 rolled up", joined, whole, "as ingest wrote them", "MiB", joined / whole, "< 1",
                    joined < whole, True, 1))  # fmt: skip
    notes = [
        f"{label}: {each.days * DAY:,} windows, {each.days * 17_280:,} batches, {each.mib:,.0f} MiB; "
        + ", ".join(f"{work} {seconds:.3f} s" for work, seconds in each.seconds.items())
        for label, each in measured.items()
    ]
    return rows, notes


def _measure(connection: Connection, days: int, kept_days: int) -> Measured:
    history = History(NAME, days * DAY, rolled_hours=(days - kept_days) * 24)
    started = time.monotonic()
    mib = _build_size(connection, history)
    print(f"  {days} days built in {time.monotonic() - started:.0f} s", flush=True)
    closed, old = history.start_of(history.windows - 2), history.start_of(history.windows // 3)
    hour = (history.start_of(history.windows - 14), history.start_of(history.windows - 2))
    client, layout = connect_hdfs(address("webhdfs")), Layout("/bench/ledger", NAME)
    for window in range(history.windows - 14, history.windows):
        start = history.start_of(window)
        client.write(layout.window_file(start), data=b"\n" * history.read_lengths([start])[start], overwrite=True)
    commands: dict[str, tuple[tuple[str, ...], str]] = {
        "`onceover windows`": (("windows", NAME), f"{history.windows:,} windows: {history.windows - 1:,} certified"),
        "`onceover windows --state failed`": (("windows", NAME, "--state", "failed"), "no window matches"),
        "`onceover explain`, of a new window": (("explain", NAME, f"{closed:%Y-%m-%dT%H:%MZ}"), "certified"),
        "`onceover explain`, of an old window": (("explain", NAME, f"{old:%Y-%m-%dT%H:%MZ}"), "rolled up"),
        "`onceover repair --dry-run`, of an hour": (
            ("repair", NAME, "--dry-run", "--from", f"{hour[0]:%Y-%m-%dT%H:%MZ}", "--to", f"{hour[1]:%Y-%m-%dT%H:%MZ}"),
            "Nothing is to be repaired",
        ),
        "`onceover metrics --once`": (
            ("metrics", "--once"),
            f'onceover_windows{{pipeline="{NAME}",state="certified"}} {history.windows - 1}.0',
        ),
    }  # fmt: skip
    seconds, correct = {}, True
    for work, (command, expected) in commands.items():
        seconds[work], right = _time_command(command, expected)
        correct = correct and right
    writer = Writer.of(connection, history, read_registered(connection, NAME))
    seconds["all transactions of a batch"] = _time(writer.land_next, 40)
    return Measured(days, mib, seconds, correct)


def _build_size(connection: Connection, history: History) -> float:
    """Build the history in an empty ledger; return the size of the ledger's tables in MiB."""
    connection.execute("TRUNCATE onceover.pipeline CASCADE")
    connection.execute("TRUNCATE onceover.certificate CASCADE")
    connection.execute(f"DROP TABLE IF EXISTS aggregates.{NAME}")
    ledger_history.build(connection, history, find(NAME))
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(oid)) / 1048576.0 AS mib FROM pg_class "
        "WHERE relnamespace = 'onceover'::regnamespace AND relkind = 'r'"
    ).fetchone()
    return float(row["mib"]) if row else 0.0


def _time(work: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        started = time.monotonic()
        work()
        seconds.append(time.monotonic() - started)
    return middle(seconds)


def _time_command(command: tuple[str, ...], expected: str) -> tuple[float, bool]:
    """Return the median seconds of the command as a process, and whether it printed what is expected."""
    program = str(Path(sys.executable).with_name("onceover"))
    wide = {**os.environ, "COLUMNS": "500"}
    printed: list[str] = []

    def once() -> None:
        done = subprocess.run([program, *command], capture_output=True, text=True, check=False, env=wide)
        printed.append(done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}")

    once()
    seconds = _time(once, runs())
    right = all(expected in text for text in printed)
    if not right:
        print(f"  onceover {' '.join(command)} did not print {expected!r}:\n{printed[-1][-2_000:]}", flush=True)
    return seconds, right
