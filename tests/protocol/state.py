"""The protocol's state as plain values: what Kafka, HDFS, the ledger and every living process hold between two steps.

A record is its number: Kafka partition 0's offsets first, then partition 1's. One line of raw is one byte long, so that
a file's length is its number of lines; a torn line is a byte that says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

from tests.protocol.mutant import Mutant

from onceover.fault_points import RepairStep, Step

TORN = -1
T = TypeVar("T")
Counts = tuple[int, ...]  # how often each record is counted
BatchState = Literal["begun", "landed", "superseded"]


class Event(StrEnum):
    """Everything that happens besides the named steps of a batch and of a repair."""

    PLANNED = "planned"
    BEATEN = "epoch checked"
    ROWS_ADDED = "rows added without their control row"
    FENCED = "fenced"
    CRASHED = "crashed"
    ATTEMPT_FAILED = "attempt failed"
    TORN_CRASHED = "append torn, crashed"
    TORN_FAILED = "append torn, attempt failed"
    TORN_RETRIED = "append torn, task retried"
    TAKEN_OVER = "taken over"
    STORE_MOVED = "offset store ran ahead"
    CERTIFIED = "certified from the ledger"
    LOOKED = "judged clean"
    LOOK_WRITTEN = "certified what was judged clean"
    LOOK_REFUSED = "changed since it was judged"
    REFILL_WANTED = "refill wanted"
    TRY_FAILED = "repair failed"
    PUBLISH_REFUSED = "publish refused"
    ROWS_DELETED = "rows deleted without what replaces them"


class Action(NamedTuple):
    """One transition. `at` is the index of the driver, window, look or repair that it is about."""

    did: Step | RepairStep | Event
    at: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.did} #{self.at} {self.note}".rstrip()


class Span(NamedTuple):
    """An offset range `[start, end)` of one Kafka partition."""

    kafka_partition: int
    start: int
    end: int


class Batch(NamedTuple):
    epoch: int
    spans: tuple[Span, ...]
    state: BatchState
    refill: bool


class Landing(NamedTuple):
    """`file` is a window's number, or the number after the last window's: quarantine."""

    batch: int
    file: int
    byte_start: int
    records: tuple[int, ...]


class Certificate(NamedTuple):
    version: int
    landing_set: tuple[int, ...]
    frozen_length: int
    counts: Counts


class Driver(NamedTuple):
    """`step` is the last one reached, None between batches; `halfway`: the next one's first half is done."""

    epoch: int
    step: Step | None = None
    batch: int = -1
    appended: tuple[Landing, ...] = ()
    halfway: bool = False


class Repair(NamedTuple):
    """The values that one repairer read at its claim, and where it froze the file (None: not yet)."""

    window: int
    token: int
    version: int
    landing_set: tuple[int, ...]
    accounted: frozenset[int]
    certified: Counts | None
    frozen: int | None = None
    halfway: bool = False


class Look(NamedTuple):
    """A detection that has judged a window clean and has not written it down yet."""

    window: int
    certificate: Certificate


class Left(NamedTuple):
    """How many of each a scenario may still see. `faults`: crashes, failed attempts, torn appends."""

    faults: int = 0
    takeovers: int = 0
    repairs: int = 0
    looks: int = 0
    moves: int = 0
    failed_tries: int = 0


class State(NamedTuple):
    """Everything that outlives a step. One entry a Kafka partition, file or window."""

    stored: tuple[int, ...]
    skipped: frozenset[int]  # records that only a moved offset store passed over
    reach: tuple[int, ...]
    epoch: int
    drivers: tuple[Driver, ...]
    raw: tuple[tuple[int, ...], ...]
    batches: tuple[Batch, ...]
    landings: tuple[Landing, ...]
    rows: tuple[Counts, ...]
    control: tuple[Counts, ...]
    version: tuple[int, ...]  # 0: the ledger does not know the window yet
    certificates: tuple[Certificate | None, ...]
    token: tuple[int, ...]
    tries: tuple[int, ...]
    blocked: tuple[bool, ...]
    repairs: tuple[Repair, ...]
    looks: tuple[Look, ...]
    wanted: tuple[Span, ...]
    left: Left


@dataclass(frozen=True, eq=False)
class Scenario:
    """A small world. `logs` holds, per Kafka partition, the window of each offset's record (None: quarantine)."""

    logs: tuple[tuple[int | None, ...], ...]
    left: Left
    batch_sizes: tuple[int, ...] = (2, 3)
    windows: int = 2
    repaired: tuple[int, ...] = (0,)  # windows that repairs and detections are interleaved on; settling takes all
    torn: tuple[int, ...] = (0,)  # files whose appends may be torn
    max_tries: int = 2
    log_holds: bool = True  # whether the log still has what a hole misses
    mutants: frozenset[Mutant] = field(default=frozenset())

    @cached_property
    def window_of(self) -> tuple[int | None, ...]:
        return tuple(window for log in self.logs for window in log)

    @cached_property
    def first_of(self) -> tuple[int, ...]:
        """The number of each Kafka partition's record 0."""
        return tuple(sum(map(len, self.logs[:p])) for p in range(len(self.logs)))

    @cached_property
    def nothing(self) -> Counts:
        return (0,) * len(self.window_of)

    def file_of(self, record: int) -> int:
        window = self.window_of[record]
        return self.windows if window is None else window

    def records(self, spans: tuple[Span, ...]) -> tuple[int, ...]:
        return tuple(self.first_of[p] + offset for p, start, end in spans for offset in range(start, end))

    def has(self, mutant: Mutant) -> bool:
        return mutant in self.mutants

    def start(self) -> State:
        """Nothing read yet, and one driver that holds epoch 1."""
        kafka_partitions, windows = (0,) * len(self.logs), (0,) * self.windows
        return State(
            stored=kafka_partitions,
            skipped=frozenset(),
            reach=kafka_partitions,
            epoch=1,
            drivers=(Driver(1),),
            raw=((),) * (self.windows + 1),
            batches=(),
            landings=(),
            rows=(self.nothing,) * self.windows,
            control=(self.nothing,) * self.windows,
            version=windows,
            certificates=(None,) * self.windows,
            token=windows,
            tries=windows,
            blocked=(False,) * self.windows,
            repairs=(),
            looks=(),
            wanted=(),
            left=self.left,
        )


Move = tuple[Action, State]


def put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The same values but one."""
    return (*values[:at], value, *values[at + 1 :])


def without(values: tuple[T, ...], at: int) -> tuple[T, ...]:
    return (*values[:at], *values[at + 1 :])


def added(counts: Counts, records: tuple[int, ...]) -> Counts:
    return tuple(n + (r in records) for r, n in enumerate(counts))
