"""Reader of quarantined records: their numbers, reasons and contents. Only reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from onceover.lines.line_file import decode_file, read_intact
from onceover.lines.line_reference import Line
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.record import encode_id
from onceover.quarantine.counted_ids import CountedIds


class QuarantineFiles(Protocol):
    """Files of a pipeline: its days of quarantine with their sizes in bytes, and the content of a day."""

    def list_quarantine_days(self) -> dict[date, int]: ...
    def read_quarantine(self, day: date) -> Iterator[bytes]: ...


class ReleasedIds:
    """A set of released IDs, for membership tests."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        self._starts: dict[KafkaPartition, list[int]] = {}
        self._ends: dict[KafkaPartition, list[int]] = {}
        for piece in coalesce(ranges):
            self._starts.setdefault(piece.source, []).append(piece.start)
            self._ends.setdefault(piece.source, []).append(piece.end)

    def __contains__(self, line: Line) -> bool:
        record = line.record
        at = bisect_right(self._starts.get(record.source, []), record.offset)
        return at > 0 and record.offset < self._ends[record.source][at - 1]


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
    files: QuarantineFiles, days: Mapping[date, int], released_ids: ReleasedIds, say: Say
) -> Iterator[DayReasons]:
    """Yield each day's records by reason, in the order of `days`. A record counts once a day, by its ID, however often
    its batch was read; memory holds a few megabytes, whatever a day's size."""
    for day, size in days.items():
        with CountedIds() as counted:
            corrupt = 0
            for line in decode_file(_report_progress(files.read_quarantine(day), day, size, say)):
                if isinstance(line, Line):
                    counted.add(line, None if line in released_ids else line.reason or "")
                else:
                    corrupt += 1
            reasons, released = counted.count()
        yield DayReasons(day, size, reasons, corrupt, released)


def read_first_records(
    files: QuarantineFiles,
    days: Mapping[date, int],
    released_ids: ReleasedIds,
    matches: Callable[[Line], bool],
    most: int,
) -> Iterator[Line]:
    """Yield the first `most` matching records of these days, each ID once, in the order of the files."""
    seen: set[bytes] = set()
    for day in days:
        for line in read_intact(files.read_quarantine(day)):
            if line in released_ids or not matches(line):
                continue
            if _encode_id(line) not in seen:
                if len(seen) == most:
                    return
                seen.add(_encode_id(line))
                yield line


def _encode_id(line: Line) -> bytes:
    return encode_id(line.record.source, line.record.offset)


def _report_progress(chunks: Iterator[bytes], day: date, size: int, say: Say) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        done += len(chunk)
        say(day, done, size)
        yield chunk
