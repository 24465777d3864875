"""Contents of quarantine by day and reason, also beside torn lines of a writer that died."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date

import pytest
from tests.raw_lines import join_append, quarantine_record

from onceover.lines.line_format import encode
from onceover.model.offsets import KafkaPartition, OffsetRange, OffsetSet
from onceover.model.record import Record
from onceover.quarantine.reader import DayReasons, count_by_reason, read_first_records

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


def quarantined(offset: int, reason: str, value: bytes = b"{") -> bytes:
    return encode(quarantine_record(Record(KafkaPartition("0badcafe", 0), offset, 0, None, (), value), reason))


class QuarantineDays:
    """Days of quarantine, read in small pieces."""

    def __init__(self, days: dict[date, bytes]) -> None:
        self._days = days

    def list_quarantine_days(self) -> dict[date, int]:
        return {day: len(content) for day, content in self._days.items()}

    def read_quarantine(self, day: date) -> Iterator[bytes]:
        content = self._days[day]
        return (content[at : at + 100] for at in range(0, len(content), 100))


HELD = QuarantineDays(
    {
        FIRST: join_append([quarantined(1, "not JSON"), quarantined(2, "beyond horizon"), quarantined(3, "not JSON")])
        + join_append([quarantined(3, "not JSON")])[:-20]
        + join_append([quarantined(3, "not JSON"), quarantined(4, "not JSON")]),
        SECOND: join_append([quarantined(9, "beyond skew")]),
    }
)


NONE = OffsetSet(())


def test_record_counts_once_by_reason_and_torn_lines_apart() -> None:
    progress: list[tuple[date, int, int]] = []
    contents = list(count_by_reason(HELD, HELD.list_quarantine_days(), NONE, lambda *report: progress.append(report)))
    sizes = HELD.list_quarantine_days()
    assert contents == [
        DayReasons(FIRST, sizes[FIRST], {"not JSON": 3, "beyond horizon": 1}, 1),
        DayReasons(SECOND, sizes[SECOND], {"beyond skew": 1}, 0),
    ]
    assert [each.records for each in contents] == [4, 1]
    assert (FIRST, sizes[FIRST], sizes[FIRST]) in progress
    assert list(count_by_reason(HELD, {}, NONE, lambda *report: None)) == []


def test_limit_gives_the_first_records_each_once() -> None:
    days = HELD.list_quarantine_days()
    shown = [line.record.offset for line in read_first_records(HELD, days, NONE, lambda line: True, 100)]
    assert shown == [1, 2, 3, 4, 9]
    assert [x.record.offset for x in read_first_records(HELD, days, NONE, lambda x: x.reason == "not JSON", 2)] == [
        1,
        3,
    ]


def test_released_records_are_counted_apart_and_not_shown() -> None:
    here, elsewhere = KafkaPartition("0badcafe", 0), KafkaPartition("ffffffff", 0)
    released = OffsetSet([OffsetRange(here, 2, 4), OffsetRange(here, 9, 10), OffsetRange(elsewhere, 1, 2)])
    days = HELD.list_quarantine_days()
    contents = list(count_by_reason(HELD, days, released, lambda *report: None))
    assert [(each.reasons, each.released) for each in contents] == [({"not JSON": 2}, 2), ({}, 1)]
    assert [line.record.offset for line in read_first_records(HELD, days, released, lambda line: True, 100)] == [1, 4]


@pytest.mark.rare
def test_memory_does_not_grow_with_the_number_of_records() -> None:
    """A day of 300,000 scattered records, each twice, in 20 MB beyond what the process has: a dict of their IDs needs
    three times as much."""
    listed = subprocess.run([sys.executable, "-c", LARGE_DAY], capture_output=True, text=True, check=False)
    assert (listed.returncode, listed.stdout.split()) == (0, ["300000", "0"]), listed.stderr


LARGE_DAY = """
from datetime import date
from itertools import chain
from pathlib import Path
from tests.onceover.quarantine.test_reader import FIRST, NONE, quarantined
from onceover.quarantine.reader import count_by_reason

class LargeDay:
    def read_quarantine(self, day):
        for offset in chain(range(0, 3_000_000, 10), range(0, 3_000_000, 10)):
            yield quarantined(offset, "not JSON") + b"\\n"

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) >> 10

used = peak()
(seen,) = count_by_reason(LargeDay(), {FIRST: 0}, NONE, lambda *report: None)
assert peak() - used < 20, f"{peak() - used} MB"
print(seen.reasons["not JSON"], seen.corrupt_lines)
"""
