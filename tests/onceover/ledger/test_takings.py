"""A window has one holder, from when a person takes it until its next certificate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from bench.large_ledger import LargeLedger, start_of

from onceover.errors import TakenError, UsageError
from onceover.explain.page.history import read_history
from onceover.explain.page.pipelines import list_pipelines
from onceover.explain.page.trouble import list_trouble
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.certificates import Certificate, certify
from onceover.ledger.database import Connection, connect
from onceover.ledger.takings import list_takings, release_windows, take_windows
from onceover.ledger.window_history import read_window_history
from onceover.ledger.windows import bump_versions, list_windows
from onceover.model.digest import Digest
from onceover.model.window import WindowRange

pytestmark = pytest.mark.stack
NAME = "held"
MINUTES = int((start_of(1) - start_of(0)) / timedelta(minutes=1))
SPAN = WindowRange(start_of(2), start_of(6))
HOSTILE = "'; DROP TABLE onceover.action; -- <script>alert(1)</script> %s {0}"


@pytest.fixture(autouse=True)
def _uncertified(connection: Connection, ledger: LargeLedger) -> None:
    bump_versions(connection, NAME, [start_of(n) for n in (3, 4, 5)])


def certify_window(connection: Connection, ledger: LargeLedger, window: int) -> None:
    start = start_of(window)
    (row,) = connection.execute(
        'SELECT version FROM onceover."window" WHERE pipeline = %s AND window_start = %s', [NAME, start]
    ).fetchall()
    stated = Certificate(start, row["version"], (), 0, Digest(), Fingerprint(0, "0"), "me", "a test")
    certify(connection, ledger.known, stated)


def list_holders(connection: Connection) -> list[tuple[int, str, str]]:
    return [(each.windows, each.who, each.ticket) for each in list_takings(connection, NAME)]


def test_windows_that_are_not_certified_are_taken(connection: Connection) -> None:
    assert take_windows(connection, NAME, SPAN, "kim", "INC-1") == (3, [])
    (taking,) = list_takings(connection, NAME)
    assert (taking.start, taking.end) == (start_of(3), start_of(6))
    assert list_holders(connection) == [(3, "kim", "INC-1")]
    with pytest.raises(UsageError, match="all that are there are certified or expired"):
        take_windows(connection, NAME, WindowRange(start_of(0), start_of(2)), "kim", "INC-1")
    assert len(read_history(connection, NAME)) == 1, "what was refused left no trace"


def test_certificate_ends_a_taking_for_ever(connection: Connection, ledger: LargeLedger) -> None:
    take_windows(connection, NAME, SPAN, "kim", "INC-1")
    certify_window(connection, ledger, 3)
    assert list_holders(connection) == [(2, "kim", "INC-1")]
    bump_versions(connection, NAME, [start_of(3)])
    assert list_holders(connection) == [(2, "kim", "INC-1")], "a window that is wrong once more is not taken"
    for window in (4, 5):
        certify_window(connection, ledger, window)
    assert list_holders(connection) == []


def test_second_person_hears_of_the_first_and_may_take_over(connection: Connection) -> None:
    take_windows(connection, NAME, SPAN, "kim", "INC-1")
    part = WindowRange(start_of(4), start_of(6))
    with pytest.raises(TakenError, match=r"^2 windows, .* taken by kim for INC-1 at .*; ask there, or give a reason"):
        take_windows(connection, NAME, part, "lee", "INC-2")
    assert list_holders(connection) == [(3, "kim", "INC-1")]

    windows, before = take_windows(connection, NAME, part, "lee", "INC-2", "kim's shift has ended")

    assert (windows, [(each.windows, each.who) for each in before]) == (2, [(2, "kim")])
    assert list_holders(connection) == [(1, "kim", "INC-1"), (2, "lee", "INC-2")]
    assert take_windows(connection, NAME, part, "lee", "INC-3") == (2, []), "one's own need no reason"


def test_of_two_who_take_at_once_one_is_refused(connection: Connection) -> None:
    def take(who: str) -> str:
        with connect(connection.info.dsn) as own:
            try:
                take_windows(own, NAME, SPAN, who, f"of {who}")
            except TakenError as error:
                return str(error)
        return ""

    with ThreadPoolExecutor(4) as threads:
        said = list(threads.map(take, ("ann", "bob", "kim", "lee")))

    ((windows, who, _),) = list_holders(connection)
    assert (windows, said.count("")) == (3, 1)
    assert all(f"taken by {who} for of {who}" in each for each in said if each)


def test_release_of_anothers_windows_needs_a_reason(connection: Connection) -> None:
    take_windows(connection, NAME, SPAN, "kim", "INC-1")
    with pytest.raises(TakenError, match="release them"):
        release_windows(connection, NAME, SPAN, "lee")
    assert release_windows(connection, NAME, SPAN, "kim") == (3, [])
    assert list_holders(connection) == []
    with pytest.raises(UsageError, match="is taken; list"):
        release_windows(connection, NAME, SPAN, "kim")
    assert [each["what"] for each in read_history(connection, NAME)] == ["release windows", "take windows for INC-1"]


def test_holder_is_shown_wherever_a_window_is(connection: Connection, ledger: LargeLedger) -> None:
    take_windows(connection, NAME, WindowRange(start_of(4), start_of(5)), HOSTILE, HOSTILE)

    rows = list_trouble(connection, NAME).rows
    assert [(each["start"], each["taken_by"], each["ticket"]) for each in rows] == [
        (start_of(3), None, None),
        (start_of(4), HOSTILE, HOSTILE),
        (start_of(5), None, None),
    ]
    (line,) = (each for each in list_pipelines(connection) if each["name"] == NAME)
    assert [each.who for each in line["taken"]] == [HOSTILE]
    held = read_window_history(connection, NAME, start_of(4))["taken"]
    assert held == line["taken"]
    listed = {row["window_start"]: (row["taken_by"], row["ticket"]) for row in list_windows(connection, NAME)}
    assert {start: held for start, held in listed.items() if held != (None, None)} == {start_of(4): (HOSTILE, HOSTILE)}
    certify_window(connection, ledger, 4)
    bump_versions(connection, NAME, [start_of(4)])
    assert {each["taken_by"] for each in list_trouble(connection, NAME).rows} == {None}
    assert {row["taken_by"] for row in list_windows(connection, NAME)} == {None}
