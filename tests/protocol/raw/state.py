"""The state as plain values: what Kafka, raw, the ledger and each living process hold between two steps.

One driver and one repair live at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

from tests.protocol.raw.events import Action
from tests.protocol.raw.lines import OFFSETS, Line, Lines, Record, Records
from tests.protocol.raw.rules import ALL_RULES, Rules

T = TypeVar("T")
DriverStep = Literal["append", "increment", "land", "commit"]

NO_CUT = 9
_CLOSES = {0: (0, 0), 1: (1, 1), 2: (1, 2), 3: (2, 3)}
"""By number of records of a Kafka partition: the frontier at which it closes each window."""


class Log(NamedTuple):
    """A Kafka partition. `epochs` has the epoch of each offset, None below `start`; `last` what each one last held."""

    start: int = 0
    epochs: tuple[int | None, ...] = ()
    leader_epoch: int = 0
    last: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        return len(self.epochs)

    def has(self, offset: int) -> bool:
        return self.start <= offset < len(self.epochs)


class Landing(NamedTuple):
    """One append of a batch."""

    window: int
    byte_start: int
    length: int
    lines: Lines


Batch = tuple[Landing, ...]


class Base(NamedTuple):
    """What the landings of a window were proved to be when they were deleted: all lines of its first `length` bytes."""

    length: int
    lines: Lines


class Certificate(NamedTuple):
    """`batches`: how many had landed when its inputs were read. `valid`: its version is the window's. `strays`: lines
    within its length that do not count, because they landed in another window. `base`: for its deleted landings.
    `given_up`: lines that a person gave up."""

    batches: int
    length: int
    lines: Lines
    valid: bool
    extras: Records
    unread: Records
    strays: bool = False
    base: Base | None = None
    given_up: Lines = ()


class Partition(NamedTuple):
    """What the ledger knows of a Kafka partition. From the offset `cut` on, what its log holds is of epoch 1."""

    origin: int = 0
    reach: int = 0
    stored: int | None = None
    cut: int = NO_CUT


class Ledger(NamedTuple):
    """The ledger and the aggregates, one database; `rows`, `listed` and `certificates` have one entry a window."""

    ledger_id: int
    partitions: tuple[Partition, ...]
    known: bool = False  # it knows the pipeline
    batches: tuple[Batch, ...] = ()
    rows: tuple[Lines, ...] = ((), ())
    listed: tuple[bool, ...] = (False, False)  # it knows the window
    certificates: tuple[Certificate | None, ...] = (None, None)
    deleted: Lines = ()  # whose landings are: the ledger keeps their ranges, by leader epoch
    begun: tuple[tuple[bool, Records], ...] = ()  # that never landed: after an upgrade? and what they were to read
    decisions: tuple[tuple[Record, int], ...] = ()  # a record that several of these covered, and its window
    given_up: Lines = ()  # of a lost file, and Kafka has them no more
    unread: Records = ()  # a person accepts that Kafka dropped these before they were read
    upgraded: bool = False  # it knows of the newer version

    def replaced(self) -> Ledger:
        """Return another database, which knows nothing yet."""
        return Ledger(self.ledger_id + 1, (Partition(),) * len(self.partitions))


class Driver(NamedTuple):
    """A batch under way; `read` is None before it is read. `again`: it reads what a hole lacks."""

    step: DriverStep
    records: Records
    again: bool
    read: Lines | None
    appended: Batch


class Repair(NamedTuple):
    """What a repair knows: the batches that had landed at its claim; once it has read, the frozen length too, and the
    lines that it counts."""

    window: int
    batches: int
    length: int | None = None
    lines: Lines = ()
    extras: Lines = ()
    strays: bool = False


class Left(NamedTuple):
    """How many of each fault may still happen."""

    crashes: int = 0
    expiries: int = 0
    cuts: int = 0
    losses: int = 0
    restores: int = 0
    upgrades: int = 0
    takeovers: int = 0
    foreign: int = 0
    retentions: int = 0
    deletions: int = 0
    releases: int = 0
    file_losses: int = 0


class State(NamedTuple):
    """Everything there is. `born` is the first offset of each Kafka partition that was ever to be read."""

    logs: tuple[Log, ...]
    stored: tuple[int | None, ...]  # by an offset store outside the ledger
    ledger: Ledger
    left: Left
    files: tuple[Lines, ...] = ((), (), ())
    marker: int | None = None  # the ledger that raw names
    origins: tuple[int, ...] | None = None  # where reading began, in raw
    driver: Driver | None = None
    repair: Repair | None = None
    rebuilding: bool = False
    backup: Ledger | None = None
    born: tuple[int, ...] | None = None
    upgraded: bool = False
    releasing: tuple[int, int, Line] | None = None  # until it has landed: its window, its place there, its line
    hung: tuple[tuple[int, Lines], ...] = ()  # appends that a superseded driver may still do
    expired: tuple[bool, ...] = (False, False)  # retention took the window's raw; raw keeps the list
    taken: tuple[Lines, ...] = ((), ())  # what retention took
    lost: tuple[Lines, ...] = ((), ())  # what raw lost with a file

    def held_at(self, record: Record) -> Line | None:
        """The line that Kafka holds now."""
        log, offset = self.logs[record // OFFSETS], record % OFFSETS
        epoch = log.epochs[offset] if offset < len(log.epochs) else None
        return None if epoch is None else record * 2 + epoch


@dataclass(frozen=True, eq=False)
class Scenario:
    """A small world. `stored_inside`: the offset store is a table of the ledger's database. `moved`: the record that an
    upgrade dates into the other window. `quarantined`: one that belongs to none."""

    records: tuple[int, ...]  # of each Kafka partition
    left: Left
    stored_inside: bool
    rows_survive: bool = False  # the aggregates survive the loss of the ledger
    moved: Record = 0
    quarantined: Record | None = None
    rules: Rules = ALL_RULES

    def closes(self, partition: int, window: int) -> int:
        return _CLOSES[self.records[partition]][window]

    def without(self, *names: str) -> Scenario:
        """The same world with these rules left out."""
        return replace(self, rules=self.rules.without(*names))

    def start(self) -> State:
        """Empty topic, empty root, empty ledger."""
        count = len(self.records)
        return State((Log(),) * count, (None,) * count, Ledger(0, (Partition(),) * count), self.left)


Move = tuple[Action, State]


def put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The same values but one."""
    return (*values[:at], value, *values[at + 1 :])
