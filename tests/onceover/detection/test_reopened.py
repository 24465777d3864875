"""Certified windows whose files are longer or shorter than certified, on a large ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import large_ledger, planting
from bench.large_ledger import LargeLedger, start_of

from onceover.detection.look import judge_windows
from onceover.detection.reopened import list_unlike_certified
from onceover.ledger.database import Connection
from onceover.model.finding_kinds import Kind

pytestmark = pytest.mark.stack


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, "lengths", 400)
    yield built
    large_ledger.drop(connection, built)


def test_certified_files_that_detection_finds_odd_are_listed(connection: Connection, ledger: LargeLedger) -> None:
    planting.plant(connection, ledger, 50, seed=7)
    right = [start_of(n) for n in range(400) if start_of(n) not in ledger.planted]
    for number, start in enumerate(right[:9]):
        ledger.files.held[start] += number - 4
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=True)
    odd = [
        each.evidence.window_start
        for each in seen.judgements
        if each.evidence.is_certified and {f.kind for f in each.findings} & {Kind.UNACCOUNTED_BYTES, Kind.MISSING_FILE}
    ]
    assert len(odd) >= 8
    assert list_unlike_certified(connection, ledger.known.name, ledger.files) == odd


def test_missing_files_and_expired_windows_are_not_listed(connection: Connection, ledger: LargeLedger) -> None:
    held = ledger.files.held
    held[start_of(3)] += 50
    held[start_of(5)] -= 50
    del held[start_of(7)]
    expire = """
        UPDATE onceover."window" SET expired_at = now(), removed_to_landing = 9223372036854775807,
          removed_to_certificate = certificate_id WHERE pipeline = %s AND window_start = ANY(%s)"""
    connection.execute(expire, [ledger.known.name, [start_of(9), start_of(11)]])
    del held[start_of(9)]
    held[start_of(11)] = 70
    assert list_unlike_certified(connection, ledger.known.name, ledger.files) == [start_of(3), start_of(5)]
