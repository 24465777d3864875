"""Window files that the ledger does not know, beside a compacted file that was set aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import cast

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of

from onceover.context import PipelineContext
from onceover.detection.files_without_window import register_unknown_files
from onceover.ledger.compactions import set_compacted
from onceover.ledger.database import Connection
from onceover.ledger.windows import bump_versions
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile, RawFile

pytestmark = pytest.mark.stack
NAME = "unknown_files"


@dataclass
class Files:
    """A double of HDFS: the text files of these windows, and a compacted file of each of those."""

    texts: list[datetime]
    compacted: list[datetime]
    listed: int = 0

    def count_by_day(self) -> dict[date, int]:
        return {start_of(0).date(): len(self.texts) + len(self.compacted)}

    def list_window_files(self, start: datetime, end: datetime) -> list[RawFile]:
        self.listed += 1
        files = [(at, "log") for at in self.texts] + [(at, "0.zst") for at in self.compacted]
        return [RawFile(f"/{at:%H%M}.{suffix}", 100, window_start=at) for at, suffix in files]


@dataclass
class Context:
    """A double of a pipeline's context."""

    ledger: Connection
    files: Files = field(default_factory=lambda: Files([start_of(0), start_of(1)], [start_of(2)]))


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    """Three certified windows; a compacted file replaces the last one's text."""
    built = large_ledger.build(connection, NAME, 3, rows=True)
    set_compacted(connection, NAME, {start_of(2): CompactedFile(Digest(1, 1, 1, 1, 1), 50)})
    connection.execute(
        'UPDATE onceover."window" SET text_replaced = true WHERE pipeline = %s AND window_start = %s',
        [NAME, start_of(2)],
    )
    yield built
    large_ledger.drop(connection, built)


def test_compacted_file_set_aside_hides_no_unknown_file(connection: Connection, ledger: LargeLedger) -> None:
    context = Context(connection)

    def register() -> list[datetime]:
        return register_unknown_files(cast("PipelineContext", context), ledger.known)

    assert (register(), context.files.listed) == ([], 0), "each file is known, so no folder is listed"
    bump_versions(connection, NAME, [start_of(2)])  # as a reread does, which sets the file aside
    context.files.compacted.clear()
    context.files.texts += [start_of(9), start_of(9) + timedelta(minutes=1)]
    assert register() == [start_of(9)], "no window of the pipeline starts a minute later"
