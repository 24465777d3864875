"""Records that have no place in any window: how many, why, and what they are. Only reads."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from onceover.model.line import Line, PlacedLine, decode_file, encode_id
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce


class QuarantineFiles(Protocol):
    """What is asked of a pipeline's files: its days of quarantine with their bytes, and a day's bytes."""

    def quarantine_days(self) -> dict[date, int]: ...
    def quarantine(self, day: date) -> Iterator[bytes]: ...


class ReleasedIds:
    """IDs that were released: what is asked of them is whether one is among them."""

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
"""Called while a day is read: the day, bytes read of it, bytes of it."""


@dataclass(frozen=True, slots=True)
class DayReasons:
    """One day: records by reason, those that were `released` apart, and stretches of its file that hold no intact line,
    left by a writer that died."""

    day: date
    bytes: int
    reasons: Mapping[str, int]
    corrupt_lines: int
    released: int = 0

    @property
    def records(self) -> int:
        return sum(self.reasons.values())


def count_by_reason(
    files: QuarantineFiles, days: Mapping[date, int], gone: ReleasedIds, say: Say
) -> Iterator[DayReasons]:
    """Each day's records by reason, in the order of days. A record counts once in a day, by its ID, however often a
    batch was read again."""
    for day, size in days.items():
        found: dict[bytes, str] = {}
        released: set[bytes] = set()
        corrupt = 0
        for line in decode_file(_report_progress(files.quarantine(day), day, size, say)):
            if not isinstance(line, PlacedLine):
                corrupt += 1
            elif line.line in gone:
                released.add(_encode_id(line.line))
            else:
                found[_encode_id(line.line)] = line.line.reason or ""
        yield DayReasons(day, size, dict(Counter(found.values()).most_common()), corrupt, len(released))


def read_first_records(
    files: QuarantineFiles, days: Mapping[date, int], gone: ReleasedIds, wanted: Callable[[Line], bool], most: int
) -> Iterator[Line]:
    """The first `most` wanted records of these days, each ID once, as they stand in the files."""
    seen: set[bytes] = set()
    for day in days:
        for line in decode_file(files.quarantine(day)):
            if not isinstance(line, PlacedLine) or line.line in gone or not wanted(line.line):
                continue
            if _encode_id(line.line) not in seen:
                if len(seen) == most:
                    return
                seen.add(_encode_id(line.line))
                yield line.line


def _encode_id(line: Line) -> bytes:
    return encode_id(line.record.source, line.record.offset)


def _report_progress(chunks: Iterator[bytes], day: date, size: int, say: Say) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        done += len(chunk)
        say(day, done, size)
        yield chunk
