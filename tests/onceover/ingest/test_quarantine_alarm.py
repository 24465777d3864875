"""Whether ingest says loudly that most of a batch went to quarantine, and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from tests.raw_lines import join_append

from onceover.errors import UnreachableError
from onceover.ingest.quarantine_alarm import QuarantineAlarm
from onceover.ingest.report import Progress, make_reporter
from onceover.lines.line_format import Line, encode
from onceover.model.batch import Landing, LandingPart
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.raw.layout import Layout

SOURCE, DAY = KafkaPartition("0a1b2c3d", 0), date(2026, 3, 1)
REASONS = [b"SQL failed: key host"] * 3 + [b"tombstone"]
CONTENT = b"earlier\n" + join_append(
    encode(Line(Record(SOURCE, offset, 0, None, (), None), None, "V1-00c0ffee00c0ffee", (reason,)))
    for offset, reason in enumerate(REASONS)
)


class OneFile:
    """A raw store that holds one quarantine file."""

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]:
        assert path == Layout("/raw", "log").quarantine_file(DAY)
        yield CONTENT[start:end]


class NoFile:
    """A raw store that does not answer."""

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]:
        raise UnreachableError("HDFS does not answer")


def explain(reason: str, record: Record) -> str | None:
    return f"[PATTERN] of offset {record.offset}" if reason.startswith("SQL failed") else None


def make_progress(records: int, quarantined: int) -> Progress:
    landing = Landing(None, DAY, len(b"earlier\n"), len(CONTENT), True, (LandingPart(SOURCE, Digest(quarantined)),))
    return Progress(1, records, quarantined, 0, 0.0, 0.0, {}, None, False, 0, in_quarantine=(landing,))


def test_mostly_quarantined_batch_names_its_reasons_once(caplog: pytest.LogCaptureFixture) -> None:
    report = make_reporter("log", QuarantineAlarm("log", Layout("/raw", "log"), OneFile(), explain).hear)

    for records, quarantined in ((10, 6), (10, 10), (10, 5), (4, 4)):
        report(make_progress(records, quarantined))

    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    why = "SQL failed: key host ([PATTERN] of offset 0), tombstone"
    end = "correct the contract or the producer, see `onceover quarantine log list`"
    assert said == [
        ("ERROR", f"6 of 10 records went to quarantine, most of them as: {why}; {end}"),
        ("ERROR", "10 of 10 records went to quarantine, in 2 batches in a row"),
        ("ERROR", f"4 of 4 records went to quarantine, most of them as: {why}; {end}"),
    ]


def test_quarantine_that_cannot_be_read_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    QuarantineAlarm("log", Layout("/raw", "log"), NoFile()).hear(make_progress(1, 1))

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "most of them as: unknown" in caplog.text
