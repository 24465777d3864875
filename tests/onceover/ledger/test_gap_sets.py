"""Certificates beside many accepted gaps: each says exactly what had landed, and stays small."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from onceover.config.endpoints import address
from onceover.errors import TerminalError
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.certificates import Certificate, certify, read_certificate
from onceover.ledger.database import Connection, connect
from onceover.ledger.gap_sets import store_gaps
from onceover.ledger.migrate import upgrade_schema
from onceover.ledger.window_history import read_window_history
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack

NAME = "gapped"
SOURCE, OTHER = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)
START = datetime(2026, 1, 1, tzinfo=UTC)
REGISTERED: Any = SimpleNamespace(name=NAME, contract_version=1)
MANY = 10_000
ACCOUNTED = [OffsetRange(SOURCE, 3 * n, 3 * n + 2) for n in range(MANY + 1)] + [OffsetRange(OTHER, 5, 9)]


@pytest.fixture
def connection(stack: Stack, tmp_path: Path) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection, connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1)", [NAME])
        connection.cursor().executemany(
            "INSERT INTO onceover.accepted_loss (pipeline, generation, kafka_partition, start_offset, end_offset, "
            "first_window, end_window, who, why) VALUES (%s, %s, 0, %s, %s, %s, %s, 'a', 'markers')",
            [(NAME, SOURCE.generation, 3 * n + 2, 3 * n + 3, START, START + timedelta(days=1)) for n in range(MANY)],
        )
        yield connection


def certify_window(connection: Connection, number: int, accounted: list[OffsetRange]) -> datetime:
    start = START + timedelta(minutes=5 * number)
    connection.execute(
        'INSERT INTO onceover."window" (pipeline, window_start, window_end) VALUES (%s, %s, %s)',
        [NAME, start, start + timedelta(minutes=5)],
    )
    certify(
        connection,
        REGISTERED,
        Certificate(
            start, start + timedelta(minutes=5), 1, (), accounted, 0, Digest(), Fingerprint(0, "0"), "me", "a test"
        ),
    )
    return start


def test_ten_thousand_gaps_do_not_make_certificates_large(connection: Connection) -> None:
    further = [*ACCOUNTED[:-2], OffsetRange(SOURCE, ACCOUNTED[-2].start, 40_000), OffsetRange(OTHER, 5, 12)]
    given = [ACCOUNTED, further, ACCOUNTED[-1:], [*ACCOUNTED, OffsetRange(OTHER, 20, 30)]]
    starts = [certify_window(connection, number, accounted) for number, accounted in enumerate(given)]
    sizes = connection.execute(
        "SELECT length(c::text) AS bytes FROM onceover.certificate c WHERE pipeline = %s", [NAME]
    ).fetchall()
    assert max(row["bytes"] for row in sizes) < 1_000
    gap_sets = connection.execute("SELECT gaps FROM onceover.gap_set WHERE pipeline = %s", [NAME]).fetchall()
    assert sorted(len(row["gaps"]) for row in gap_sets) == [MANY, MANY + 1], "one for both that have the same gaps"
    assert [list(read_certificate(connection, NAME, start).accounted) for start in starts] == given
    history: Any = read_window_history(connection, NAME, starts[0])
    assert history["rests_on"]["lost_offsets"] == MANY
    ((first, last),) = history["certificates"][0]["losses"]
    assert last - first == MANY - 1


def test_gaps_that_are_not_stored_refuse_the_certificate() -> None:
    connection = Mock()
    connection.execute.return_value.fetchone.return_value = None
    with pytest.raises(TerminalError, match="nothing was certified"):
        store_gaps(connection, NAME, ACCOUNTED[:3])
