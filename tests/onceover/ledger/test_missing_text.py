"""Certified windows without their text, that a person declares expired, and which are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, generation, start_of

from onceover.context import PipelineContext
from onceover.ledger import missing_text
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.conflicts import record_contents
from onceover.ledger.database import Connection
from onceover.model.conflict import Content
from onceover.model.offsets import KafkaPartition
from onceover.retention.missing import list_missing

pytestmark = pytest.mark.stack
NAME = "missing"
SOURCE = KafkaPartition(generation(NAME), 0)


@dataclass
class Files:
    """A double of HDFS: no window has a file."""

    def read_lengths(self, starts: object) -> dict[object, int]:
        return {}

    def read_compacted_lengths(self, digests: object) -> dict[object, int]:
        return {}

    def list_quarantine_days(self) -> dict[object, int]:
        return {}


@dataclass
class Context:
    """A double of a pipeline's context."""

    ledger: Connection
    registered: RegisteredPipeline
    files: Any = field(default_factory=Files)
    name: str = NAME

    def require_same_contract(self) -> RegisteredPipeline:
        return self.registered


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 10, rows=True)
    yield built
    large_ledger.drop(connection, built)


def contest(connection: Connection) -> None:
    """Have an ID of window 3 suspected, and one of window 4 in conflict with window 6."""
    connection.execute(
        "INSERT INTO onceover.suspicion (pipeline, generation, kafka_partition, start_offset, end_offset, windows) "
        "VALUES (%s, %s, 0, 5, 10, %s)",
        [NAME, generation(NAME), [start_of(3), start_of(5)]],
    )
    contents = [Content(SOURCE, 7, each, start_of(n), start_of(n)) for each, n in (("aaaa", 4), ("bbbb", 6))]
    record_contents(connection, NAME, contents)


def test_window_whose_contents_are_not_decided_is_not_declared(connection: Connection, ledger: LargeLedger) -> None:
    context = cast("PipelineContext", Context(connection, ledger.known))
    before = list_missing(context)
    assert [text.window_start for text in before.declarable] == [start_of(n) for n in range(10)]
    contest(connection)
    after = list_missing(context)
    assert [text.window_start for text in after.declarable] == [start_of(n) for n in (0, 1, 2, 7, 8, 9)]
    (why,) = {why for _, why in after.others}
    assert "several contents" in why
    declared = missing_text.mark_expired(connection, NAME, before.declarable, "kim", "a test")
    assert declared == [text.window_start for text in after.declarable], "what has become contested since is left"
