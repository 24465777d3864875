"""The state as plain values: what Kafka, raw, the marker, the ledger and each living process hold between two steps.

One Kafka partition, offsets 0 to 2, two windows, one driver and one repair at a time. A line is `offset * 2 + content`:
content 0 is what was first written under an offset, content 1 what the offset holds after the log was cut and has grown
again; the two may belong to different windows. One line of raw is one byte long; FOREIGN is of another log. A claim,
its freeze and its reading are one step here, and appends are torn between lines only; `tests/protocol` explores what
comes between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar

from tests.protocol.trust.rules import ALL_RULES, Rules

T = TypeVar("T")
Line = int
Lines = tuple[Line, ...]
Offsets = tuple[int, ...]
Decision = tuple[int, Line]  # an offset and the line that a person chose
DriverStep = Literal["append", "increment", "land", "commit"]

WINDOWS = (0, 1)
FOREIGN: Line = -2  # of an offset that this log never had, in W0
_WINDOW_OF = ((0, 1, 0), (0, 0, 1))  # by content, then by offset
_CLOSES = {
    1: (1, 1),
    2: (1, 2),
    3: (2, 3),
}  # by number of records: the frontier at which each closes


class Event(StrEnum):
    """Everything that can happen; the first group are faults and the producer's doing."""

    PRODUCED = "produced"
    EXPIRED = "log expires up to"
    CUT = "log is cut to"
    LEDGER_LOST = "LEDGER LOST"
    BACKED_UP = "ledger backed up"
    RESTORED = "LEDGER RESTORED"
    CRASHED = "driver crashes"
    TORN = "appends a part and crashes"
    TAKEN_OVER = "driver hangs and is superseded"
    APPENDED_LATE = "superseded driver appends"
    REBUILD_KILLED = "rebuild killed"
    MOVED = "a person moves away the file of"
    BACK = "log is back as before the cut"
    RAW_EXPIRED = "retention takes the raw of"
    FILE_LOST = "raw loses the file of"
    FOREIGN_APPENDED = "a line of another log is appended to"

    MARKED = "marker written, origin"
    REGISTERED = "registered, origin"
    REBUILD_BEGUN = "rebuild begins"
    REBUILT = "rebuild commits"
    ROOT_TAKEN = "PERSON: this ledger takes the root"
    PLANNED = "plans"
    REFILL_PLANNED = "plans refill"
    LOOKED_AHEAD = "plans nothing, reach"
    READ = "reads"
    READ_FAILED = "cannot read: not in the log"
    APPENDED = "appends"
    INCREMENTED = "increments"
    LANDED = "lands"
    STORED = "stores offset"
    PUT_BACK = "PERSON puts back the file of"
    LISTED = "detection: a file without a window"
    CERTIFIED = "detection certifies"
    ACCEPTED = "PERSON accepts the loss of"
    OVERWRITTEN = "PERSON accepts as overwritten"
    REREAD = "PERSON has read again for"
    GIVEN_UP = "PERSON gives up"
    DECIDED = "PERSON decides for"
    SETTLED = "repair settles the suspicion of"
    CLAIMED = "repair claims and reads"
    CONFLICTED = "repair finds a conflict"
    ADOPTED = "repair adopts"
    LEFT_OPEN = "repair: open, nothing to adopt"
    REFUSED = "repair refuses less"
    PUBLISHED = "repair publishes"


class Action(NamedTuple):
    """One transition: what happened, to which window, at which offsets, with which lines."""

    did: Event
    window: int = -1
    offset: int = -1
    end: int = -1
    lines: Lines | None = None

    def __str__(self) -> str:
        words = [str(self.did)]
        if self.window >= 0:
            words.append(f"W{self.window}")
        if self.end >= 0:
            words.append(f"[{self.offset},{self.end})")
        elif self.offset >= 0:
            words.append(str(self.offset))
        if self.lines is not None:
            words.append(shown(self.lines))
        return " ".join(words)


class Landing(NamedTuple):
    """One append of a batch. An adoption has no bytes of its own. `compared`: with what the log holds now."""

    window: int
    byte_start: int
    length: int
    lines: Lines
    compared: bool = True


Batch = tuple[Landing, ...]


class Certificate(NamedTuple):
    """`batches`: how many had landed when the inputs were read. `valid`: its version is the window's."""

    batches: int
    length: int
    lines: Lines
    valid: bool
    pending: Offsets
    losses: Offsets
    decisions: tuple[Decision, ...]
    overwritten: Offsets = ()


class Ledger(NamedTuple):
    """The ledger and the aggregates, one database. `rows` to `certificates`, and `expired`, have one entry a window."""

    ledger_id: int
    known: bool = False  # it knows the pipeline
    origin: int = 0
    reach: int = 0
    stored: int | None = None
    batches: tuple[Batch, ...] = ()
    rows: tuple[Lines, ...] = ((), ())
    listed: tuple[bool, ...] = (False, False)  # it knows the window
    unproved: tuple[bool, ...] = (False, False)  # rebuilt, and no repair has published since
    certificates: tuple[Certificate | None, ...] = (None, None)
    losses: Offsets = ()
    conflicts: tuple[tuple[int, int], ...] = ()  # offset and window
    decisions: tuple[Decision, ...] = ()
    expired: tuple[bool, ...] = (False, False)  # retention took the window's raw, or a person gave it up
    suspicions: Offsets = ()
    diverged: Offsets = ()  # had another record, says the log, and none of it has landed since
    overwritten: Offsets = ()  # of these, those that the log lost, and a person accepts that


class Driver(NamedTuple):
    """A batch under way; `read` is None before it is read."""

    step: DriverStep
    start: int
    end: int
    refill: bool
    read: Lines | None
    appended: Batch


class Repair(NamedTuple):
    """What a repair read at its claim, and what each intact line of the frozen file is."""

    window: int
    batches: int
    length: int
    lines: Lines
    pending: Offsets
    orphans: Lines
    conflicts: Lines


class Marker(NamedTuple):
    ledger_id: int
    origin: int


class Left(NamedTuple):
    """How many of each fault may still happen."""

    crashes: int = 0
    expiries: int = 0
    cuts: int = 0
    losses: int = 0
    restores: int = 0
    takeovers: int = 0
    retentions: int = 0
    returns: int = 0
    moves: int = 0
    file_losses: int = 0
    foreign: int = 0


class State(NamedTuple):
    """Everything there is. `born` is the first offset that the pipeline was ever to read."""

    log_start: int
    log: tuple[int | None, ...]  # the content of each offset; None below the start
    leader_epoch: int
    files: tuple[Lines, ...]
    marker: Marker | None
    stored: int | None  # by an offset store outside the ledger
    ledger: Ledger
    driver: Driver | None
    repair: Repair | None
    rebuilding: bool
    backup: Ledger | None
    born: int | None
    hung: tuple[tuple[int, Lines], ...]  # appends that a superseded driver may still do
    left: Left
    before_cut: tuple[int | None, ...] | None = None  # the log of a replica that may lead again
    away: tuple[int, Lines] | None = None  # a window whose file was moved away or lost, and what it held

    @property
    def log_end(self) -> int:
        return len(self.log)

    def in_log(self, offset: int) -> bool:
        return self.log_start <= offset < len(self.log)

    def line_at(self, offset: int) -> Line | None:
        """The line that Kafka holds now."""
        content = self.log[offset] if offset < len(self.log) else None
        return None if content is None else offset * 2 + content


@dataclass(frozen=True, eq=False)
class Scenario:
    """A small world. `stored_inside`: the offset store is a table of the ledger's database. `suspects`: what landed
    under one offset twice is suspected, and compared later in the files; else a landing compares at once."""

    records: int
    left: Left
    stored_inside: bool
    rows_survive: bool = False  # the aggregates survive the loss of the ledger
    suspects: bool = False
    rules: Rules = ALL_RULES

    @property
    def closes(self) -> tuple[int, int]:
        return _CLOSES[self.records]

    def without(self, *names: str) -> Scenario:
        """The same world with these rules left out."""
        return replace(self, rules=self.rules.without(*names))

    def start(self) -> State:
        """An empty topic, an empty root, an empty ledger."""
        return State(0, (), 0, ((), ()), None, None, Ledger(0), None, None, False, None, None, (), self.left)


Move = tuple[Action, State]


def window_of(line: Line) -> int:
    return _WINDOW_OF[line & 1][line >> 1]


def shown(lines: Lines) -> str:
    """Show offsets, those of the second content with a prime."""
    return "{" + " ".join(f"{line >> 1}{chr(39) * (line & 1)}" for line in lines) + "}"


def put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The same two values but one."""
    return (value, values[1]) if at == 0 else (values[0], value)
