"""Certified windows without their text, that a person declares expired, and which are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from bench.large_ledger import LargeLedger, start_of
from psycopg.types.json import Jsonb

from onceover.context import PipelineContext
from onceover.ledger import missing_text
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.windows import bump_versions
from onceover.retention.missing import list_missing

pytestmark = pytest.mark.stack
NAME = "missing"


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


def test_window_that_changed_is_not_declared(connection: Connection, ledger: LargeLedger) -> None:
    context = cast("PipelineContext", Context(connection, ledger.known))
    before = list_missing(context)
    assert [text.window_start for text in before.declarable] == [start_of(n) for n in range(10)]
    bump_versions(connection, NAME, [start_of(3), start_of(4)])
    connection.execute(
        "UPDATE onceover.certificate SET last_landing = last_landing - 1 WHERE pipeline = %s AND window_start = %s",
        [NAME, start_of(4)],
    )
    connection.execute(
        "UPDATE onceover.certificate SET extras = %s WHERE pipeline = %s AND window_start = %s",
        [Jsonb([["a generation that is not read", 0, 7, 8, None]]), NAME, start_of(5)],
    )
    assert [(text.window_start, why) for text, why in list_missing(context).others] == [
        (start_of(4), "records have landed in it since it was certified"),
        (start_of(5), "it counts records that landed nowhere and may still land, and would count twice"),
    ]
    declared = missing_text.mark_expired(connection, NAME, before.declarable, "kim", "a test")
    assert declared == [start_of(n) for n in range(10) if n not in (3, 4, 5)], "what has changed since is left"
