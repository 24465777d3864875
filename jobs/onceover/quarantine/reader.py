"""Reader of quarantined records: their numbers, reasons and contents. Only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from onceover.lines.line_file import decode_file, read_intact
from onceover.lines.line_format import Line
from onceover.model.offsets import KafkaPartition, OffsetSet
from onceover.quarantine.counted_ids import CountedIds


class QuarantineFiles(Protocol):
    """Files of a pipeline: its days of quarantine with their sizes in bytes, and the content of a day."""

    def list_quarantine_days(self) -> dict[date, int]: ...
    def read_quarantine(self, day: date) -> Iterator[bytes]: ...


Say = Callable[[date, int, int], None]
"""Progress callback while a day is read: the day, bytes read so far, bytes in total."""


@dataclass(frozen=True, slots=True)
class DayReasons:
    """One day: records by reason, without the `released` ones, and stretches of its file without an intact line, which
    a writer left that died."""

    day: date
    bytes: int
    reasons: Mapping[str, int]
    corrupt_lines: int
    released: int = 0

    @property
    def records(self) -> int:
        return sum(self.reasons.values())


def count_by_reason(
    files: QuarantineFiles, days: Mapping[date, int], released_ids: OffsetSet, say: Say
) -> Iterator[DayReasons]:
    """Yield each day's records by reason, in the order of `days`. A record counts once a day, by its ID, however often
    its batch was read; memory holds a few megabytes, whatever a day's size."""
    for day, size in days.items():
        with closing(CountedIds()) as counted:
            corrupt = 0
            for line in decode_file(_report_progress(files.read_quarantine(day), day, size, say)):
                if isinstance(line, Line):
                    counted.add(line, None if _is_in(released_ids, line) else line.reason or "")
                else:
                    corrupt += 1
            reasons, released = counted.count()
        yield DayReasons(day, size, reasons, corrupt, released)


def read_first_records(
    files: QuarantineFiles,
    days: Mapping[date, int],
    released_ids: OffsetSet,
    matches: Callable[[Line], bool],
    most: int,
) -> Iterator[Line]:
    """Yield the first `most` matching records of these days, each ID once, in the order of the files."""
    seen: set[tuple[KafkaPartition, int]] = set()
    for day in days:
        for line in read_intact(files.read_quarantine(day)):
            if _is_in(released_ids, line) or not matches(line):
                continue
            at = line.record.source, line.record.offset
            if at not in seen:
                if len(seen) == most:
                    return
                seen.add(at)
                yield line


def _is_in(ids: OffsetSet, line: Line) -> bool:
    return ids.holds(line.record.source, line.record.offset, line.record.offset + 1)


def _report_progress(chunks: Iterator[bytes], day: date, size: int, say: Say) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        done += len(chunk)
        say(day, done, size)
        yield chunk
