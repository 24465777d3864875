"""Records and lines as numbers.

A record is an offset of a Kafka partition: `partition * 3 + offset`. A line is `record * 2 + epoch`: epoch 0 is what
was written first under an offset, epoch 1 what it has after the log was cut and grew again; the two may belong to
different windows. RELEASED is added to the line of a release. In a file each line is one byte long, with TAG added if
an upgraded version evaluated it; and so are FRAGMENT, a line that was torn, and FOREIGN, a line of a log that this
pipeline never read.
"""

from __future__ import annotations

Record = int
Line = int
Lines = tuple[Line, ...]
Records = tuple[Record, ...]

WINDOWS = (0, 1)
QUARANTINE = 2  # in the place of a window
OFFSETS = 3  # at most, of one Kafka partition
TAG = 64
RELEASED = 128
FRAGMENT: Line = -1
FOREIGN: Line = -2  # in W0
_WINDOW_OF = (  # by Kafka partition, then by epoch, then by offset
    ((0, 1, 0), (0, 0, 1)),
    ((0, 1, 0), (1, 0, 1)),
)


def record_of(line: Line) -> Record:
    return (line & (TAG - 1)) >> 1


def window_of(line: Line) -> int:
    record = record_of(line)
    return _WINDOW_OF[record // OFFSETS][line & 1][record % OFFSETS]


def shown_record(record: Record) -> str:
    """Show the offset, behind its Kafka partition if that is not the first."""
    return f"{record // OFFSETS}:{record % OFFSETS}" if record >= OFFSETS else str(record)


def shown(lines: Lines) -> str:
    """Show records, those of the second epoch with a prime, and what is no record."""
    return "{" + " ".join(_shown(line) for line in lines) + "}"


def _shown(line: Line) -> str:
    if line < 0:
        return "fragment" if line == FRAGMENT else "foreign"
    released, tagged = "released " * (line >= RELEASED), "+" * (line & TAG > 0)
    return released + shown_record(record_of(line)) + "'" * (line & 1) + tagged
