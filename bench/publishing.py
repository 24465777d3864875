"""Ten thousand small windows that a repair publishes, beside the least that any program has to write: each
window's rows deleted and inserted from a staging table, in a transaction of its own.
"""

from __future__ import annotations

import os
import time
from datetime import datetime

from psycopg import sql

from bench import large_ledger
from bench.large_ledger import LargeLedger
from bench.table import Row, alternate, middle
from onceover.config.endpoints import address
from onceover.ledger import claims, repair_requests
from onceover.ledger.database import Connection, connect
from onceover.ledger.repair_requests import RepairRequest
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import sum_digests
from onceover.model.finding import Finding
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.repair.publish import publish

WINDOWS, QUICK = 10_000, 500
KINDS = 10  # rows of a window
GOAL_SECONDS = 60.0
NAME = "bench_publishing"
RUNS = 3


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    quick = os.environ.get("BENCH") == "quick"
    windows, runs = (QUICK, 1) if quick else (WINDOWS, RUNS)
    with connect(address("postgres"), "bench") as connection:
        ledger = large_ledger.build(connection, NAME, windows, certified=False)
        correct: list[bool] = []

        def ours() -> float:
            request, claimed = _claim(connection, ledger)
            rows = _stage(connection, ledger, request.stage, len(correct))
            started = time.monotonic()
            done = sum(publish(connection, ledger.known, request, each, _rebuild(each)) for each in claimed)
            took = time.monotonic() - started
            ledger.known.table.unstage(connection, request.stage)
            correct.append(done == windows and _read(connection, ledger) == rows)
            return took

        def least() -> float:
            rows = _stage(connection, ledger, "least", len(correct))
            started = time.monotonic()
            for n in range(windows):
                with connection.transaction():
                    ledger.known.table.replace(connection, "least", large_ledger.start_of(n), 0)
            took = time.monotonic() - started
            ledger.known.table.unstage(connection, "least")
            correct.append(_read(connection, ledger) == rows)
            return took

        of_ours, of_least = alternate(ours, least, runs)
        large_ledger.drop(connection, ledger)
    seconds, peer = middle(of_ours), middle(of_least)
    goal = GOAL_SECONDS * windows / WINDOWS
    work, name = f"publish {windows:,} windows of {KINDS} rows", "DELETE and INSERT, a transaction a window"
    row = Row(work, seconds, peer, name, "s", seconds / peer, f"{goal:g} s", seconds <= goal, all(correct), runs)
    return [row], [f"{1000 * seconds / windows:.1f} ms a window, {1000 * peer / windows:.1f} for the rows alone"]


def _claim(connection: Connection, ledger: LargeLedger) -> tuple[RepairRequest, list[ClaimedWindow]]:
    windows: dict[datetime, list[Finding]] = {large_ledger.start_of(n): [] for n in range(ledger.windows)}
    request_id = repair_requests.create_request(connection, ledger.known.name, "bench", "bench", windows)
    request = repair_requests.read_request(connection, ledger.known.name, request_id)
    claimed, _ = claims.claim(connection, request)
    return request, claimed


def _rebuild(claimed: ClaimedWindow) -> RebuiltWindow:
    ranges = tuple(RebuiltRange(*part) for landing in claimed.landings for part in landing.parts)
    digest = sum_digests(each.digest for each in ranges)
    return RebuiltWindow(digest, digest.records, 0, ranges)


def _stage(connection: Connection, ledger: LargeLedger, stage: str, number: int) -> list[tuple[datetime, str, int]]:
    starts = [large_ledger.start_of(n) for n in range(ledger.windows)]
    rows = [(start, f"kind-{k}", number * 1000 + k) for start in starts for k in range(KINDS)]
    lines = (f"{start:%Y-%m-%d %H:%M:%S+00}\t{kind}\t{events}" for start, kind, events in rows)
    ledger.known.table.stage(connection, stage, lines)
    return rows


def _read(connection: Connection, ledger: LargeLedger) -> list[tuple[datetime, str, int]]:
    query = sql.SQL("SELECT window_start, kind, events FROM {} ORDER BY 1, 2").format(ledger.known.table.table)
    return [(row["window_start"], row["kind"], row["events"]) for row in connection.execute(query)]
