"""The large ledger of a test module, under the name that it gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger

from onceover.ledger.database import Connection


@pytest.fixture
def ledger(connection: Connection, request: pytest.FixtureRequest) -> Iterator[LargeLedger]:
    """Ten certified windows with a row each, of the pipeline that the module calls `NAME`."""
    built = large_ledger.build(connection, request.module.NAME, 10, rows=True)
    yield built
    large_ledger.drop(connection, built)
