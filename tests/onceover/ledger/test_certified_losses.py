"""Certificates beside many accepted losses: each names them all, and stays small."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.onceover.ledger.driven_pipeline import insert_window, rolled_back

from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.database import Connection
from onceover.ledger.window_history import read_window_history
from onceover.model.digest import Digest
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack

NAME = "lossy"
START = datetime(2026, 1, 1, tzinfo=UTC)
REGISTERED: Any = SimpleNamespace(name=NAME, contract_version=1)
MANY = 10_000


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    with rolled_back(NAME) as connection:
        connection.cursor().executemany(
            "INSERT INTO onceover.accepted_loss (pipeline, generation, kafka_partition, start_offset, end_offset, "
            "first_window, end_window, who, why) VALUES (%s, %s, 0, %s, %s, %s, %s, 'a', 'markers')",
            [(NAME, "0a1b2c3d", 3 * n + 2, 3 * n + 3, START, START + timedelta(days=1)) for n in range(MANY)],
        )
        yield connection


def test_ten_thousand_losses_do_not_make_a_certificate_large(connection: Connection) -> None:
    end = START + timedelta(minutes=5)
    insert_window(connection, NAME, START, end)
    stated = Certificate(START, 1, (), 0, Digest(), Fingerprint(0, "0"), "me", "a test")
    certify(connection, REGISTERED, stated)
    (row,) = connection.execute(
        "SELECT length(c::text) AS bytes FROM onceover.certificate c WHERE pipeline = %s", [NAME]
    ).fetchall()
    assert row["bytes"] < 1_000
    history: Any = read_window_history(connection, NAME, START)
    assert history["rests_on"]["lost_offsets"] == MANY
    ((first, last),) = history["certificates"][0]["losses"]
    assert last - first == MANY - 1
