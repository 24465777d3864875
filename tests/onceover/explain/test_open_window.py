"""An open window whose file is gone: a fault that `explain` shows before the window closes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of

from onceover.context import PipelineContext
from onceover.explain.gather import _judge
from onceover.ledger.database import Connection
from onceover.model.finding_kinds import Kind
from onceover.model.windowing import Windowing

pytestmark = pytest.mark.stack


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, "opened", 10, certified=False)
    yield built
    large_ledger.drop(connection, built)


def test_open_window_shows_lost_lines_and_nothing_else(connection: Connection, ledger: LargeLedger) -> None:
    connection.execute("UPDATE onceover.pipeline SET watermark = %s WHERE name = 'opened'", [start_of(0)])
    root = SimpleNamespace(require_same_store=lambda: None)
    known = SimpleNamespace(ledger=connection, name="opened", files=ledger.files, root=root)
    context = cast("PipelineContext", known)
    del ledger.files.held[start_of(5)]
    judged, why, *_ = _judge(context, Windowing(5).window_at(start_of(5)))
    assert ([finding.kind for finding in judged or ()], why) == ([Kind.MISSING_FILE], "it is still open")
    ledger.files.held[start_of(6)] += 7
    assert _judge(context, Windowing(5).window_at(start_of(6)))[:2] == (None, "it is still open")
