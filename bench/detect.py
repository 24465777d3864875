"""Detection on a year of windows, and on a month of real window files beside a scan of all raw with DuckDB.

Onceover reads the ledger, and the lengths of files whose windows are not certified. The peer reads every line of every
file and finds repeated IDs, lines of another window, and windows with more or fewer lines than the aggregates count:
all that is detectable without a ledger. Its files are on the local disk; the time to fetch them is reported separately.
"""

from __future__ import annotations

import os
import shutil
import time
from datetime import datetime, timedelta

from bench import large_ledger, month_of_raw, planting
from bench.large_ledger import LargeLedger
from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address, home, locate_hdfs
from onceover.detection.look import Look, judge_windows
from onceover.detection.sweep import sweep_windows
from onceover.ledger.database import Connection, connect
from onceover.model.finding_kinds import Kind
from onceover.observability import metric_values
from onceover.raw.hdfs import connect_hdfs
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles

FAILURES = 100
MONTH = 31 * 24 * 60 // large_ledger.MINUTES
DAY = 24 * 60 // large_ledger.MINUTES
GOAL_SECONDS = 2.0
SEED = 20130105
_OF_PIPELINE = {Kind.HOLE}


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    with connect(address("postgres"), "onceover bench") as connection:
        month, month_notes = _month(connection)
        year, year_notes = _year(connection)
    return [*year, month], [*year_notes, *month_notes]


def _year(connection: Connection) -> tuple[list[Row], list[str]]:
    windows = large_ledger.YEAR // (10 if os.environ.get("BENCH") == "quick" else 1)
    started = time.monotonic()
    ledger = large_ledger.build(connection, "year", windows, rows=True)
    built = time.monotonic() - started
    started = time.monotonic()
    swept = sweep_windows(connection, ledger.known, ledger.files, None)
    swept_s = time.monotonic() - started
    planting.plant(connection, ledger, FAILURES, SEED)

    def detect() -> tuple[float, Look]:
        started = time.monotonic()
        seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=False)
        return time.monotonic() - started, seen

    _, first = detect()
    correct = _is_exact(ledger, first) and swept.compared == windows and not swept.differing
    planted = [detect()[0] for _ in range(max(5, runs()))]
    day = [start for n in range(windows - DAY, windows) if (start := large_ledger.start_of(n)) not in ledger.planted]
    with large_ledger.uncertified(connection, ledger, day):
        _, first = detect()
        fresh = [detect()[0] for _ in range(max(5, runs()))]
    day_correct = _is_exact(ledger, first) and len(first.judgements) == len(day) + FAILURES
    scraped = [_scrape(connection) for _ in range(max(5, runs()))]
    size = f"{windows:,} windows, {ledger.landings:,} landings"
    notes = [
        f"{size}, built in {built:.0f} s; seconds of each detection {_each(planted)}; the sweep over all of it, "
        f"rows of the aggregates included and lengths handed in, {swept_s:.1f} s; of each scrape of the metrics "
        f"{_each(scraped)}",
    ]
    return [
        _against_goal(f"{FAILURES} failures in {size}", planted, correct),
        _against_goal(f"the same and a day of {len(day)} windows never judged before", fresh, day_correct),
    ], notes


def _scrape(connection: Connection) -> float:
    started = time.monotonic()
    metric_values.read_signals(connection, timedelta(hours=1))
    return time.monotonic() - started


def _month(connection: Connection) -> tuple[Row, list[str]]:
    windows = MONTH // (10 if os.environ.get("BENCH") == "quick" else 1)
    ledger = large_ledger.build(connection, "month", windows)
    planting.plant(connection, ledger, FAILURES, SEED)
    layout, local = Layout("/bench", "month"), home() / ".local" / "bench" / "month"
    client = connect_hdfs(address("webhdfs"))
    started = time.monotonic()
    lines = month_of_raw.write(client, layout, ledger)
    written = time.monotonic() - started
    started = time.monotonic()
    month_of_raw.fetch(client, layout, local)
    fetched = time.monotonic() - started
    files = WindowFiles(locate_hdfs(), layout)
    started = time.monotonic()
    lengths = files.read_lengths(map(large_ledger.start_of, range(windows)))
    listed = time.monotonic() - started
    looks: list[Look] = []
    scans: list[dict[datetime, str]] = []

    def ours() -> float:
        started = time.monotonic()
        looks.append(judge_windows(connection, ledger.known.name, files, None, every=False))
        return time.monotonic() - started

    def peer() -> float:
        started = time.monotonic()
        scans.append(month_of_raw.scan(connection, ledger, local))
        return time.monotonic() - started

    ours_s, peer_s = alternate(ours, peer, runs())
    agree = all(_as_a_scan_says(seen) == scan for seen in looks for scan in scans)
    correct = lengths == ledger.files.held and agree and all(_is_exact(ledger, seen) for seen in looks)
    row = Row(
        f"{FAILURES} failures in {windows:,} window files on HDFS, lengths listed", middle(ours_s), middle(peer_s),
        f"DuckDB over all {lines:,} lines, already on the local disk", "s", middle(ours_s) / middle(peer_s),
        "below the scan", middle(ours_s) < middle(peer_s), correct, len(ours_s),
    )  # fmt: skip
    notes = [
        f"{windows:,} window files written to HDFS in {written:.0f} s and fetched for DuckDB in {fetched:.0f} s, "
        f"which is not in its time; both name the same {len(scans[0])} windows with surplus or missing lines, ours "
        f"finds {FAILURES - len(scans[0])} more that no scan sees (late, unproved, a digest that differs); "
        f"listing every file of the month, as the sweep does, takes {listed:.1f} s",
    ]
    shutil.rmtree(local)
    return row, notes


def _is_exact(ledger: LargeLedger, seen: Look) -> bool:
    """Return whether exactly the planted findings were made, and none about any other window."""
    by_window = {j.evidence.window_start: frozenset(f.kind for f in j.findings) for j in seen.judgements if j.findings}
    return by_window == ledger.expected() and {f.kind for f in seen.ledger.findings} == _OF_PIPELINE


def _as_a_scan_says(seen: Look) -> dict[datetime, str]:
    """Translate Onceover's findings into a scan's words, as far as a scan can see them."""
    verdicts = {}
    for judged in seen.judgements:
        evidence = {f.kind: f.evidence for f in judged.findings}
        if judged.evidence.overlaps or (judged.file_length or 0) > judged.evidence.expected_length:
            verdicts[judged.evidence.window_start] = "surplus"
        elif Kind.MISSING_FILE in evidence or evidence.get(Kind.AGGREGATE_MISMATCH, {}).get("difference", "") == 3:
            verdicts[judged.evidence.window_start] = "missing"
    return verdicts


def _against_goal(work: str, seconds: list[float], correct: bool) -> Row:
    median = middle(seconds)
    return Row(work, median, GOAL_SECONDS, "the goal", "s", median / GOAL_SECONDS, f"{GOAL_SECONDS:.0f} s",
               median < GOAL_SECONDS, correct, len(seconds))  # fmt: skip


def _each(seconds: list[float]) -> str:
    return ", ".join(f"{s:.2f}" for s in seconds)
