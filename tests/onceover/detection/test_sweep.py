"""The sweep: finds outside changes to certified windows, and reopens exactly those windows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of

from onceover.detection.look import judge_windows
from onceover.detection.sweep import SweepResult, reopen, sweep_windows
from onceover.ledger.database import Connection
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange

pytestmark = pytest.mark.stack

WINDOWS = 60


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, "swept", WINDOWS, rows=True)
    yield built
    large_ledger.drop(connection, built)


def change_rows(connection: Connection, window: int, change: str) -> None:
    connection.execute(f"{change} WHERE window_start = %s", [start_of(window)])


def run_sweep(connection: Connection, ledger: LargeLedger, only: WindowRange | None = None) -> SweepResult:
    return sweep_windows(connection, ledger.known, ledger.files, only, patience=0.0)


def kinds(result: SweepResult) -> dict[datetime, set[Kind]]:
    return {each.window_start: {f.kind for f in each.findings} for each in result.differing}


def detect(connection: Connection, ledger: LargeLedger) -> dict[datetime, set[Kind]]:
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=False)
    return {j.evidence.window_start: {f.kind for f in j.findings} for j in seen.judgements}


def damage(connection: Connection, ledger: LargeLedger) -> dict[datetime, set[Kind]]:
    """Damage one window in each way; return the findings that a sweep must report."""
    held = ledger.files.held
    held[start_of(3)] += 50
    held[start_of(5)] -= 50
    del held[start_of(7)]
    change_rows(connection, 9, "UPDATE aggregates.swept SET events = events + 1")
    change_rows(connection, 11, "DELETE FROM aggregates.swept")
    connection.execute(
        "INSERT INTO aggregates.swept (window_start, window_end, kind, events) VALUES (%s, %s, 'b', 1)",
        [start_of(13), start_of(14)],
    )
    connection.execute('UPDATE onceover."window" SET low2 = low2 + 1 WHERE window_start = %s', [start_of(15)])
    missing, mismatch = Kind.MISSING_FILE, Kind.AGGREGATE_MISMATCH
    found = {3: Kind.UNACCOUNTED_BYTES, 5: missing, 7: missing} | dict.fromkeys((9, 11, 13, 15), mismatch)
    return {start_of(n): {kind} for n, kind in found.items()}


def test_untouched_windows_are_all_compared_and_none_differs(connection: Connection, ledger: LargeLedger) -> None:
    result = run_sweep(connection, ledger)

    assert (result.compared, result.differing, result.waiting) == (WINDOWS, (), 0)


def test_sweep_finds_each_changed_window_that_detection_misses(connection: Connection, ledger: LargeLedger) -> None:
    expected = damage(connection, ledger)

    assert detect(connection, ledger) == {}
    assert kinds(run_sweep(connection, ledger)) == expected
    assert detect(connection, ledger) == {}, "a sweep alone changes nothing"


def test_sweeps_finding_is_judged_by_the_next_detection(connection: Connection, ledger: LargeLedger) -> None:
    expected = damage(connection, ledger)

    reopened = reopen(connection, ledger.known.name, run_sweep(connection, ledger).differing)

    assert reopened == sorted(expected)
    assert detect(connection, ledger) == expected
    assert run_sweep(connection, ledger).differing == (), "their certificates are invalid: a sweep reports each once"
    noted = connection.execute("SELECT count(*) AS n FROM onceover.finding WHERE pipeline = 'swept'").fetchone()
    assert noted == {"n": len(expected)}


def test_window_changed_since_it_was_swept_is_left_alone(connection: Connection, ledger: LargeLedger) -> None:
    damage(connection, ledger)
    differing = run_sweep(connection, ledger).differing
    connection.execute(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
        ["swept", start_of(9)],
    )

    assert start_of(9) not in reopen(connection, ledger.known.name, differing)


def test_rows_of_a_window_without_records_are_found_by_detection(connection: Connection, ledger: LargeLedger) -> None:
    nothing = "records = 0, high1 = 0, low1 = 0, high2 = 0, low2 = 0"
    start = start_of(WINDOWS - 1)
    of = "(SELECT landing_id FROM onceover.landing WHERE pipeline = 'swept' AND window_start = %s)"
    connection.execute(f"DELETE FROM onceover.landing_part WHERE landing_id IN {of}", [start])
    connection.execute("DELETE FROM onceover.landing WHERE pipeline = 'swept' AND window_start = %s", [start])
    connection.execute(f'UPDATE onceover."window" SET {nothing} WHERE window_start = %s', [start])
    connection.execute(
        f"UPDATE onceover.certificate SET {nothing}, last_landing = 0, frozen_length = 0, aggregate_rows = 0, "
        "aggregate_hash = '0:0' WHERE pipeline = 'swept' AND window_start = %s",
        [start],
    )
    del ledger.files.held[start]

    reopen(connection, ledger.known.name, run_sweep(connection, ledger).differing)

    assert detect(connection, ledger) == {start: {Kind.AGGREGATE_MISMATCH}}


def test_sweep_compares_only_the_windows_of_its_range(connection: Connection, ledger: LargeLedger) -> None:
    damage(connection, ledger)

    result = run_sweep(connection, ledger, WindowRange(start_of(5), start_of(9)))

    assert result.compared == 4
    assert set(kinds(result)) == {start_of(5), start_of(7)}


def test_length_that_a_batch_in_flight_may_explain_waits(connection: Connection, ledger: LargeLedger) -> None:
    expected = damage(connection, ledger)
    connection.execute(
        "INSERT INTO onceover.driver (pipeline, epoch, owner, expires_at, holder) "
        "VALUES ('swept', 1, 'test', now() + interval '1 hour', gen_random_uuid())"
    )
    connection.execute("INSERT INTO onceover.batch (pipeline, epoch, contract_version) VALUES ('swept', 1, 1)")

    result = run_sweep(connection, ledger)

    rows_changed = {start_of(9), start_of(11), start_of(13)}
    assert set(kinds(result)) == rows_changed
    assert result.waiting == len(expected) - len(rows_changed)


def test_window_landed_during_the_sweep_is_no_finding(connection: Connection, ledger: LargeLedger) -> None:
    start = start_of(3)

    class Landing(large_ledger.Lengths):
        def read_lengths(self, window_starts: object) -> dict[datetime, int]:
            connection.execute(
                'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
                ["swept", start],
            )
            return {**ledger.files.held, start: ledger.files.held[start] + 50}

    result = sweep_windows(connection, ledger.known, Landing(WINDOWS), None, patience=0.0)

    assert result.differing == ()
