"""Detection and a scrape of the metrics on a large ledger: both find exactly the planted failures and read rows of
uncertified windows only.

`make bench NAME=detect` measures seconds; these tests count the rows that PostgreSQL read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest
from bench import large_ledger, planting
from bench.large_ledger import LargeLedger, Planted

from onceover.config.endpoints import address
from onceover.detection import evidence
from onceover.detection.look import Look, judge_windows
from onceover.detection.reopened import list_unlike_certified
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind
from onceover.observability import metric_values
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
T = TypeVar("T")

WINDOWS = 10_000
FAILURES = 100
A_WINDOW = 2 * large_ledger.MINUTES * (1 + 3 * large_ledger.PARTITIONS)  # landings, and for each its parts' ranges
LARGE_TABLES = ["batch", "batch_range", "landing", "landing_part"]


@pytest.fixture(scope="module")
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        yield connection


@pytest.fixture(scope="module")
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    """Five weeks of windows of 5 minutes, all certified but those with a planted failure."""
    built = large_ledger.build(connection, "large", WINDOWS)
    planting.plant(connection, built, FAILURES, seed=20130105)
    yield built
    large_ledger.drop(connection, built)


def kinds(seen: Look) -> dict[datetime, frozenset[Kind]]:
    return {j.evidence.window_start: frozenset(f.kind for f in j.findings) for j in seen.judgements if j.findings}


def count_read(connection: Connection, act: Callable[[], T]) -> tuple[T, int]:
    """Return what `act` returns and the rows of the large tables that it looked up by an index; it scans none."""
    query = (
        "SELECT sum(seq_tup_read) AS scanned, sum((SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i "
        "WHERE i.relid = t.relid)) AS looked_up FROM pg_stat_user_tables t "
        "WHERE schemaname = 'onceover' AND relname = ANY(%s)"
    )

    def read() -> Any:
        connection.execute("SELECT pg_stat_force_next_flush()")
        return connection.execute(query, [LARGE_TABLES]).fetchone()

    before = read()
    result = act()
    after = read()
    assert after["scanned"] == before["scanned"], "a large table was read from end to end"
    return result, int(after["looked_up"] - before["looked_up"])


def test_planted_failures_are_all_found_and_nothing_else(connection: Connection, ledger: LargeLedger) -> None:
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=False)

    assert set(ledger.planted.values()) == set(large_ledger.SHOWS)
    assert len(ledger.planted) == FAILURES
    assert kinds(seen) == ledger.expected()
    assert {f.kind for f in seen.ledger.findings} == {Kind.HOLE}
    assert (seen.changing, seen.ledger.open_windows) == (0, 0)


def test_digest_difference_with_equal_count_is_shown_as_its_own(connection: Connection, ledger: LargeLedger) -> None:
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=False)

    def differences(what: Planted) -> set[object]:
        at = [start for start, planted in ledger.planted.items() if planted == what]
        return {j.findings[0].evidence["difference"] for j in seen.judgements if j.evidence.window_start in at}

    assert differences("digest") == {"digest"}
    assert differences("count") == {3}


def test_detection_skips_landings_and_lengths_once_certified(connection: Connection, ledger: LargeLedger) -> None:
    ledger.files.asked = 0
    seen, looked_up = count_read(
        connection, lambda: judge_windows(connection, ledger.known.name, ledger.files, None, every=False)
    )

    assert len(seen.judgements) == ledger.files.asked == FAILURES
    assert 0 < looked_up < 2 * FAILURES * A_WINDOW < ledger.landings


def test_lengths_as_certified_are_compared_without_a_landing(connection: Connection, ledger: LargeLedger) -> None:
    _, looked_up = count_read(connection, lambda: list_unlike_certified(connection, ledger.known.name, ledger.files))

    assert looked_up == 0


def test_scrape_reads_landings_of_no_certified_window(connection: Connection, ledger: LargeLedger) -> None:
    connection.execute("UPDATE onceover.pipeline SET log_retention = '7 days' WHERE name = %s", [ledger.known.name])
    scraped, looked_up = count_read(
        connection, lambda: list(metric_values.read_signals(connection, timedelta(hours=1)))
    )

    (seen,) = (signals for signals in scraped if signals.pipeline == ledger.known.name)
    assert seen.windows == {WindowState.CERTIFIED: WINDOWS - FAILURES, WindowState.CLOSED: FAILURES}
    only_now = {"duplicated", "duplicated since", "late"}  # planted by a landing
    assert seen.overdue == sum(what not in only_now for what in ledger.planted.values())
    assert 0 < looked_up < 2 * FAILURES * A_WINDOW < ledger.landings


def test_first_day_of_windows_is_judged_and_right(connection: Connection, ledger: LargeLedger) -> None:
    day = [start for n in range(WINDOWS - 288, WINDOWS) if (start := large_ledger.start_of(n)) not in ledger.planted]
    with large_ledger.uncertified(connection, ledger, day):
        seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=False)

    assert {j.evidence.window_start for j in seen.judgements} == {*day, *ledger.planted}
    assert kinds(seen) == ledger.expected()


def test_ledger_without_uncertified_windows_has_nothing_to_judge(connection: Connection, ledger: LargeLedger) -> None:
    before, after = large_ledger.START, min(ledger.planted)

    seen = evidence.read_evidence(connection, ledger.known.name, before, after, False)

    assert seen.evidence == ()


def test_certified_windows_are_judged_too_on_request(connection: Connection, ledger: LargeLedger) -> None:
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=True)

    assert len(seen.judgements) == WINDOWS
    assert kinds(seen) == ledger.expected()
