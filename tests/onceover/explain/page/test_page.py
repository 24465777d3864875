"""What the page reads, from a ledger of five weeks with a few troubled windows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, timedelta

import pytest
from bench import large_ledger
from bench.large_ledger import START, LargeLedger, start_of
from psycopg.types.json import Jsonb

from onceover.errors import UsageError
from onceover.explain.page.history import list_holes, read_history
from onceover.explain.page.numbers import read_numbers
from onceover.explain.page.pipelines import list_pipelines
from onceover.explain.page.run import read_request, read_run
from onceover.explain.page.strip import MAX_SLOTS, MEANINGS, read_strip
from onceover.explain.page.trouble import list_trouble
from onceover.ledger import repair_requests
from onceover.ledger.actions import record_action
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_findings
from onceover.ledger.windows import WindowState, list_windows
from onceover.model.dag_run import DagRun
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.repair.revisions import restore_revision

pytestmark = pytest.mark.stack
NAME = f"p{uuid.uuid4().hex[:10]}"
MINUTES = timedelta(minutes=5)


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 60, rows=True)
    yield built
    large_ledger.drop(connection, built)


def change(connection: Connection, windows: range, what: str) -> None:
    starts = [start_of(n) for n in windows]
    connection.execute(
        f'UPDATE onceover."window" SET {what} WHERE pipeline = %s AND window_start = ANY(%s)', [NAME, starts]
    )


def find_wrong(connection: Connection, windows: range, finding: Finding) -> None:
    change(connection, windows, "version = version + 1")
    for n in windows:
        record_findings(connection, NAME, {start_of(n): [finding]})


TOO_MANY = Finding(Kind.AGGREGATE_MISMATCH, {"counted": 112, "landed": 100, "difference": 12})


def test_strip_has_the_letter_of_each_window(connection: Connection, ledger: LargeLedger) -> None:
    find_wrong(connection, range(3, 5), TOO_MANY)
    change(connection, range(5, 6), "blocked_at = now(), blocked_why = 'a test'")
    change(connection, range(6, 7), "version = version + 1")
    change(connection, range(7, 8), "expired_at = now()")
    change(connection, range(8, 9), "claimed_by = 'a test', claimed_until = now() + interval '1 hour'")
    change(connection, range(9, 10), "certified_basis = 'raw'")
    change(connection, range(10, 11), "certified_basis = 'loss'")

    strip = read_strip(connection, NAME, START - 2 * MINUTES, START + 12 * MINUTES)

    assert (strip["minutes"], strip["states"]) == (5, "..CCCffbcerRLC")
    listed = [str(row["state"])[0] for row in list_windows(connection, NAME, None, START, START + 9 * MINUTES)]
    assert strip["states"][2:11].lower() == "".join(listed)
    assert strip["at"].tzinfo is not None
    assert set(strip["states"]) <= set(MEANINGS)


def test_strip_refuses_a_range_of_parts_of_windows(connection: Connection, ledger: LargeLedger) -> None:
    with pytest.raises(UsageError, match="is not the start of a window"):
        read_strip(connection, NAME, START + timedelta(minutes=1), START + MINUTES)
    with pytest.raises(UsageError, match="choose at most"):
        read_strip(connection, NAME, START, START + (MAX_SLOTS + 1) * MINUTES)


def test_trouble_joins_windows_that_are_wrong_alike(connection: Connection, ledger: LargeLedger) -> None:
    find_wrong(connection, range(3, 6), TOO_MANY)
    find_wrong(connection, range(6, 7), Finding(Kind.UNACCOUNTED_BYTES, {"expected_length": 1, "file_length": 2}))
    find_wrong(connection, range(8, 9), TOO_MANY)
    change(connection, range(8, 9), "blocked_at = now(), blocked_why = 'no line', tries = 3")

    found = list_trouble(connection, NAME)

    shown = [
        [r[name] for name in ("start", "windows", "state", "findings", "difference", "tries", "blocked_why")]
        for r in found.rows
    ]
    assert shown == [
        [start_of(3), 3, "failed", ["aggregate mismatch"], 36, 0, None],
        [start_of(6), 1, "failed", ["unaccounted bytes"], None, 0, None],
        [start_of(8), 1, "blocked", ["aggregate mismatch"], 12, 3, "no line"],
    ]
    assert found.next is None
    assert found.rows[0]["end"] == start_of(6)


def test_trouble_comes_in_pages(connection: Connection, ledger: LargeLedger) -> None:
    for n in range(0, 10, 2):
        find_wrong(connection, range(n, n + 1), TOO_MANY)

    first = list_trouble(connection, NAME, limit=3)
    rest = list_trouble(connection, NAME, after=first.next, limit=3)

    assert [r["start"] for r in (*first.rows, *rest.rows)] == [start_of(n) for n in range(0, 10, 2)]
    assert (first.next, rest.next) == (start_of(4), None)
    nothing = list_trouble(connection, NAME, WindowState.BLOCKED)
    assert nothing.rows == ()
    spans = [found.find_span(4 * MINUTES) for found in (first, rest, nothing)]
    assert spans == [None, (start_of(6), start_of(9)), None], "what one repair may take"


def test_trouble_counts_duplicates_by_their_offsets(connection: Connection, ledger: LargeLedger) -> None:
    find_wrong(connection, range(3, 4), Finding(Kind.DUPLICATED, {"landings": [1, 2]}))
    change(connection, range(3, 4), "records = records + 15")

    (found,) = list_trouble(connection, NAME).rows

    assert found["difference"] == 15


def test_pipelines_say_how_wrong_and_since_when(connection: Connection, ledger: LargeLedger) -> None:
    find_wrong(connection, range(3, 5), TOO_MANY)
    find_wrong(connection, range(7, 8), Finding(Kind.AGGREGATE_MISMATCH, {"counted": 1, "landed": 5, "difference": -4}))
    request = repair_requests.create_request(
        connection, NAME, "kim", "INC-1", {start_of(3): [TOO_MANY]}, dag_run=DagRun("repair_on_call", "r1")
    )
    change(connection, range(3, 4), f"claimed_by = 'request:{request}', claimed_until = now() + interval '1 hour'")

    line = next(each for each in list_pipelines(connection) if each["name"] == NAME)

    assert [line["wrong"][name] for name in ("too_many", "too_few", "windows")] == [24, 4, 3]
    assert line["wrong"]["since"] is not None
    assert line["windows"][WindowState.FAILED] == 2
    (running,) = line["running"]
    assert (running["who"], running["why"], running["run_id"], running["windows"]) == ("kim", "INC-1", "r1", 1)


def test_run_is_followed_until_its_windows_are_certified(connection: Connection, ledger: LargeLedger) -> None:
    find_wrong(connection, range(3, 5), TOO_MANY)
    run = DagRun("repair_on_call", f"manual__{NAME}")
    asked = {start_of(3): [TOO_MANY], start_of(4): [TOO_MANY]}
    assert read_run(connection, run.dag_id, run.run_id) == []
    request = repair_requests.create_request(connection, NAME, "kim", "INC-1", asked, dag_run=run)

    (planned,) = read_run(connection, run.dag_id, run.run_id)
    assert [planned[name] for name in ("states", "total", "certified", "done")] == [{"planned": 2}, 2, 0, False]
    assert planned["sentence"] == "0 of 2 windows certified so far: 2 planned."
    states = [(3, "confirmed", None), (4, "failed", "no such line")]
    for n, state, reason in states:
        connection.execute(
            "UPDATE onceover.repair SET state = %s, reason = %s WHERE request_id = %s AND window_start = %s",
            [state, reason, request, start_of(n)],
        )
    change(connection, range(3, 4), "version = certified_version")

    ended = read_request(connection, request)

    assert (ended["certified"], ended["done"]) == (1, True)
    assert ended["sentence"] == "1 of 2 windows certified, the others are not: 1 confirmed, 1 failed."
    assert [(w["start"], w["state"], w["reason"]) for w in ended["windows"]] == [
        (start_of(4), "failed", "no such line"),
        (start_of(3), "confirmed", None),
    ]
    with pytest.raises(UsageError, match="no repair request"):
        read_request(connection, 10**12)


def test_numbers_compare_kept_rows_with_rows_of_now(connection: Connection, ledger: LargeLedger) -> None:
    at = start_of(3)
    table = f"aggregates.{NAME}"
    assert read_numbers(connection, NAME, at)["revisions"] is None
    held = connection.execute(f"SELECT events FROM {table} WHERE window_start = %s", [at]).fetchall()[0]["events"]
    repair = replace_rows(connection, ledger, at)

    numbers = read_numbers(connection, NAME, at, repair)

    assert numbers["measures"] == ["events"]
    assert numbers["rows"] == [
        {"key": {"kind": "a"}, "before": {"events": held}, "after": {"events": held + 2}},
        {"key": {"kind": "b"}, "before": None, "after": {"events": 7}},
    ]
    assert (numbers["left_out"], numbers["revisions"]) == (0, {"before": 0, "after": None})
    restore_revision(connection, ledger.known, at, None, "kim", "it was right")
    assert read_numbers(connection, NAME, at, repair)["rows"] == numbers["rows"]
    now = read_numbers(connection, NAME, at)
    assert [(row["before"], row["after"]) for row in now["rows"]] == [
        ({"events": held + 2}, {"events": held}),
        ({"events": 7}, None),
    ]
    with pytest.raises(UsageError, match="replaced no rows"):
        read_numbers(connection, NAME, at, 10**12)


def replace_rows(connection: Connection, ledger: LargeLedger, at: object) -> int:
    """Replace a window's rows as a repair does, and keep the old ones; return the repair."""
    count = {"control": {"records": 5, "high1": 0, "low1": 0, "high2": 0, "low2": 0}, "revision": 0}
    request = repair_requests.create_request(connection, NAME, "kim", "INC-1", {start_of(3): [TOO_MANY]})
    (row,) = connection.execute(
        "UPDATE onceover.repair SET state = 'confirmed', before = %s, after = %s WHERE request_id = %s "
        "RETURNING repair_id",
        [Jsonb(count), Jsonb({**count, "revision": 1}), request],
    ).fetchall()
    ledger.known.table.keep(connection, start_of(3), 0)
    table = f"aggregates.{NAME}"
    connection.execute(f"UPDATE {table} SET events = events + 2, revision = 1 WHERE window_start = %s", [at])
    connection.execute(
        f"INSERT INTO {table} (window_start, window_end, kind, events, revision) VALUES (%s, %s, 'b', 7, 1)",
        [at, start_of(4)],
    )
    change(connection, range(3, 4), "revision = 1")
    return int(row["repair_id"])


def test_history_lists_acts_of_persons_newest_first(connection: Connection, ledger: LargeLedger) -> None:
    for n in range(3):
        repair_requests.create_request(connection, NAME, "kim", f"INC-{n}", {start_of(n): [TOO_MANY]})
    record_action(connection, NAME, "set offsets", "lee", "moved", {"store": "kafka", "before": None, "after": {}})

    acts = read_history(connection, NAME, limit=3)
    earlier = read_history(connection, NAME, before=acts[-1]["at"])
    connection.execute("DELETE FROM onceover.action WHERE pipeline = %s", [NAME])

    assert [(a["who"], a["what"], a["why"]) for a in (*acts, *earlier)] == [
        ("lee", "set offsets", "moved"),
        ("kim", "repair", "INC-2"),
        ("kim", "repair", "INC-1"),
        ("kim", "repair", "INC-0"),
    ]
    assert (acts[1]["windows"], acts[1]["first"]) == (1, start_of(2))
    assert acts[0]["at"].astimezone(UTC) > acts[1]["at"]


def test_holes_are_told_in_words(connection: Connection, ledger: LargeLedger) -> None:
    gap = {"offsets": ["0a1b2c3d", 0, 10, 30], "reason": "expired", "likely_windows": []}
    record_findings(connection, NAME, {None: [Finding(Kind.HOLE, {"gaps": [gap]})]})

    (hole,) = list_holes(connection, NAME)

    assert (hole["kind"], hole["since"] is not None) == ("hole", True)
    assert "0a1b2c3d-0" in hole["how"]
    assert "Kafka no longer has them" in hole["how"]
