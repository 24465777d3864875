"""Files whose length the ledger does not explain: of certified, closed and expired windows, on a large ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import large_ledger, planting
from bench.large_ledger import LargeLedger, start_of

from onceover.detection.judgements import judge_windows
from onceover.detection.unexplained_lengths import list_unexplained_files
from onceover.ledger.database import Connection
from onceover.model.finding_kinds import Kind

pytestmark = pytest.mark.stack


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, "lengths", 400)
    yield built
    large_ledger.drop(connection, built)


def test_files_that_detection_finds_odd_are_unexplained(connection: Connection, ledger: LargeLedger) -> None:
    planting.plant(connection, ledger, 50, seed=7)
    seen = judge_windows(connection, ledger.known.name, ledger.files, None, every=True)
    odd = {
        each.evidence.window_start
        for each in seen.judgements
        if each.file_length and {f.kind for f in each.findings} & {Kind.UNACCOUNTED_BYTES, Kind.MISSING_FILE}
    }
    assert len(odd) > 5
    files = list_unexplained_files(connection, ledger.known.name, ledger.files)
    assert {file.window_start for file in files} == odd


def test_certified_and_expired_windows_are_listed(connection: Connection, ledger: LargeLedger) -> None:
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
    files = list_unexplained_files(connection, ledger.known.name, ledger.files)
    assert [(f.window_start, f.expected.is_certified, f.expected.is_expired) for f in files] == [
        (start_of(3), True, False),
        (start_of(5), True, False),
        (start_of(11), True, True),
    ]
    assert (files[2].expected.expected_length, files[2].length) == (0, 70)
