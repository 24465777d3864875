"""Files on HBase while processes are killed or paused between any two requests, on a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from onceover.errors import BusyError, OnceoverError, UnknownOutcomeError, UnreachableError
from onceover.raw.hbase_store import HBaseStore

PATH, ASIDE, CONTENT = "/raw/p/2026-03-01/1200.log", "/raw/p/expired/2026-03-01/1200.log.1", b"one\ntwo\n"


class Table:
    """A double of `Cells`: rows in memory. `before` is called with the number of each request, and may raise."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.requests = 0
        self.before: Callable[[int], None] = lambda number: None
        self.denies: Callable[[int], bool] = lambda number: False  # a swap is done, and the answer is no

    def get(self, row: str) -> bytes | None:
        self._count()
        return self.rows.get(row)

    def swap(self, row: str, expected: bytes | None, value: bytes) -> bool:
        number = self._count()
        if self.rows.get(row) != expected:
            return False
        self.rows[row] = value
        return not self.denies(number)

    def scan(self, first: str, end: str) -> Iterator[tuple[str, bytes]]:
        self._count()
        yield from sorted((row, value) for row, value in self.rows.items() if first <= row < end)

    scan_small = scan

    def scan_lengths(self, first: str, end: str) -> Iterator[tuple[str, int]]:
        yield from ((row, len(value)) for row, value in self.scan(first, end))

    def find_last(self, after: str, last: str) -> tuple[str, int, int] | None:
        self._count()
        found = [(row, len(value), 0) for row, value in self.rows.items() if after < row <= last]
        return max(found, default=None)

    def remove(self, rows: list[str]) -> None:
        for row in rows:
            self._count()
            self.rows.pop(row, None)

    def _count(self) -> int:
        self.requests += 1
        self.before(self.requests)
        return self.requests

    @property
    def cells(self) -> list[str]:
        return [row for row in self.rows if not row.startswith("n:")]


def open_on(table: Table) -> HBaseStore:
    store = HBaseStore("x:1")
    store._cells = table  # type: ignore[assignment]
    return store


def make() -> tuple[Table, HBaseStore]:
    table = Table()
    store = open_on(table)
    store.append(PATH, [CONTENT])
    table.requests = 0
    return table, store


def act_at(table: Table, number: int, act: Callable[[], object]) -> None:
    """Have this happen before the request of that number, once."""

    def act_once(request: int) -> None:
        if request == number:
            table.before = lambda request: None
            act()

    table.before = act_once


def be_killed() -> None:
    raise KeyboardInterrupt


def kill_at_each_request(work: Callable[[HBaseStore], object]) -> Iterator[tuple[int, Table]]:
    """Do the work, killed before each of its requests in turn and at last not at all; yield number and table."""
    for number in range(1, 40):
        table, store = make()
        act_at(table, number, be_killed)
        with suppress(KeyboardInterrupt):
            work(store)
        was_killed, table.before = table.requests >= number, lambda request: None
        yield number, table
        if not was_killed:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("reads_target_first", [False, True])
def test_killed_move_leaves_one_name_to_every_reader(reads_target_first: bool) -> None:
    number = 0
    for number, table in kill_at_each_request(lambda store: store.move(PATH, ASIDE)):
        found = [open_on(table).read(path) for path in ((ASIDE, PATH) if reads_target_first else (PATH, ASIDE))]
        if reads_target_first:
            found = [open_on(table).read(path) for path in (ASIDE, PATH)]  # what the read of the source ended
        assert sorted(filter(None, found)) == [CONTENT], f"killed before request {number}"
    assert number > 5


def test_late_record_of_a_killed_move_stays_with_its_file() -> None:
    for number, table in kill_at_each_request(lambda store: store.move(PATH, ASIDE)):
        open_on(table).append(PATH, [b"late\n"])
        files = [open_on(table).read(path) for path in (ASIDE, PATH)]
        assert files in ([None, CONTENT + b"late\n"], [CONTENT, b"late\n"]), f"killed before request {number}"


@pytest.mark.parametrize("number", range(1, 8))
def test_paused_mover_changes_nothing_that_came_later(number: int) -> None:
    table, store = make()

    def act() -> None:
        other = open_on(table)
        if other.read_length(PATH) is not None:
            other.move(PATH, ASIDE)
        other.move(ASIDE, PATH)
        other.append(PATH, [b"later\n"])

    act_at(table, number, act)
    with suppress(BusyError):
        store.move(PATH, ASIDE)
    assert table.requests > number, "it was paused"
    files = [open_on(table).read(path) for path in (PATH, ASIDE)]
    assert sorted(filter(None, files)) == [CONTENT + b"later\n"]


def test_killed_removal_is_finished_by_the_next() -> None:
    for number, table in kill_at_each_request(lambda store: store.remove(PATH)):
        open_on(table).remove(PATH)
        assert (table.cells, open_on(table).read(PATH)) == ([], None), f"killed before request {number}"


def test_answer_that_was_lost_and_asked_again_is_no_other_writer() -> None:
    for number in range(1, 20):
        table = Table()
        table.denies = lambda request, number=number: request == number  # type: ignore[misc]
        store = open_on(table)
        try:
            store.create(PATH, CONTENT)
        except BusyError:
            assert store.read(PATH) is None, "a cell that is denied fails the creation, before there is a name"
            continue
        assert store.read(PATH) == CONTENT
        assert store.move(PATH, ASIDE)
        assert (store.read(PATH), store.read(ASIDE)) == (None, CONTENT)
        assert store.remove(ASIDE)
        assert table.cells == []


def test_of_two_appends_at_one_end_one_is_refused() -> None:
    table, store = make()
    act_at(table, 3, lambda: open_on(table).append(PATH, [b"theirs\n"]))
    with pytest.raises(BusyError, match="is written by another process"):
        store.append(PATH, [b"ours\n"])
    assert store.read(PATH) == CONTENT + b"theirs\n"


def test_append_that_breaks_off_has_an_unknown_outcome() -> None:
    table, store = make()

    def fail() -> None:
        raise UnreachableError("away")

    act_at(table, 3, fail)
    with pytest.raises(UnknownOutcomeError, match="broke off at byte 8"):
        store.append(PATH, [b"more\n"])


def test_append_to_a_file_that_moved_is_not_proved() -> None:
    table, store = make()
    act_at(table, 3, lambda: open_on(table).move(PATH, ASIDE))
    assert not store.append(PATH, [b"more\n"]).proved
    assert store.read(ASIDE) == CONTENT + b"more\n"


def test_gap_is_named_and_what_is_intact_is_kept() -> None:
    table = Table()
    store = open_on(table)
    for line in (b"one\n", b"two\n", b"three\n"):
        store.append(PATH, [line])
    table.rows.pop(sorted(table.cells)[1])
    assert list(store.read_intact(PATH, lambda path, start: True)) == [b"one\n", None, b"three\n"]
    with pytest.raises(OnceoverError, match=f"{PATH} on HBase lacks its bytes from 4 on"):
        list(store.read_bytes(PATH, 0, 14))
    assert b"".join(store.read_bytes(PATH, 0, 4)) == b"one\n"
