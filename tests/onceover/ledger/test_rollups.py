"""Rollups of batches that Kafka no longer holds: the same rows as one large batch, and nothing that a proof reads is
lost. The generator of histories writes what the product writes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from bench import ledger_history
from bench.ledger_history import History
from bench.ledger_writer import Writer
from tests.onceover.ledger.pipeline_rows import read_rows

from onceover.config.endpoints import address
from onceover.detection.evidence import read_evidence
from onceover.errors import BusyError
from onceover.ledger import rollups
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.landed_offsets import list_covering, read_accounted
from onceover.ledger.lost_windows import read_unclaimed
from onceover.ledger.windows import bump_versions
from onceover.model.digest import sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.rollup import plan_rollups
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        connection.execute("SET synchronous_commit = off")  # thousands of short transactions, none of which must last
        yield connection


def name() -> str:
    return f"h{uuid.uuid4().hex[:10]}"


def build(connection: Connection, windows: int = 36) -> tuple[History, Writer]:
    """Write a history of two Kafka partitions, with a batch each half a minute."""
    history = History(name(), windows, batch_seconds=30, kafka_partitions=2)
    return history, Writer.of(connection, history, ledger_history.build(connection, history))


def starts_after(history: History, hour: int) -> dict[KafkaPartition, int]:
    """Return where Kafka's logs begin once it has dropped the first hours."""
    first = hour * 3600 // history.batch_seconds + 1
    return {r.source: r.start for r in (history.read_of(first, p) for p in range(history.kafka_partitions))}


def roll_up(connection: Connection, history: History, hour: int) -> list[int]:
    """Roll up what Kafka dropped; return the numbers of batches that were joined."""
    starts, joined = starts_after(history, hour), []
    for run in plan_rollups(rollups.list_old_batches(connection, history.name, starts)):
        assert rollups.roll_up(connection, history.name, run)
        joined.append(len(run))
    return joined


@pytest.mark.parametrize(
    ("seconds", "windows"), [(60, 4), pytest.param(5, 12, marks=pytest.mark.rare, id="an hour of batches of 5 s")]
)
def test_generated_rows_equal_rows_that_the_product_wrote(connection: Connection, seconds: int, windows: int) -> None:
    written, generated = (History(name(), windows, batch_seconds=seconds) for _ in range(2))
    writer = Writer.of(connection, written)
    writer.write()

    ours, theirs = (
        read_rows(connection, known) for known in (writer.known, ledger_history.build(connection, generated))
    )

    assert len(ours["batch"]) == windows * 300 // seconds
    for table, rows in ours.items():
        assert theirs[table] == rows, table


def test_rolled_up_rows_equal_those_of_one_batch_an_hour(connection: Connection) -> None:
    whole, by_hour = (
        History(name(), 60, batch_seconds=30, kafka_partitions=2),
        History(name(), 60, rolled_hours=3, batch_seconds=30, kafka_partitions=2),
    )
    known = ledger_history.build(connection, whole)

    assert roll_up(connection, whole, hour=3) == [120, 120, 120]

    ours, theirs = (read_rows(connection, each) for each in (known, ledger_history.build(connection, by_hour)))
    assert len(ours["batch"]) == 3 + 2 * 120
    for table, rows in ours.items():
        assert theirs[table] == rows, table


def test_what_has_landed_is_known_as_before(connection: Connection) -> None:
    histories = [build(connection)[0] for _ in range(2)]
    joined = histories[1]
    roll_up(connection, joined, hour=2)
    ids = [OffsetRange(joined.source(p), offset, offset + 1) for p in range(2) for offset in range(0, 3600, 37)]

    accounted, covering = (
        [read(each) for each in histories]
        for read in (
            lambda each: list(read_accounted(connection, each.name)),
            lambda each: [list_covering(connection, each.name, [piece]).landed for piece in ids],
        )
    )

    assert accounted[0] == accounted[1]
    for offset, one, other in zip(ids, *covering, strict=True):
        assert {x.window_start for x in one} <= {x.window_start for x in other}, f"the windows that may hold {offset}"


def test_late_record_is_judged_as_before(connection: Connection) -> None:
    """A window of joined batches counts again what landed before and after its certificate, and repairs prove both."""
    built = [build(connection) for _ in range(2)]
    judged, claims = [], []
    for number, (history, writer) in enumerate(built):
        if number:
            assert roll_up(connection, history, hour=2) == [120, 120]
        writer.land_late(history.start_of(7), records=3)
        (evidence,) = read_evidence(connection, history.name, None, None, every=False).evidence
        judged.append(
            (evidence.window_start, evidence.control, evidence.certified, evidence.landed_since, evidence.bytes_since,
             evidence.late_records, evidence.overlaps, evidence.expected_length, len(evidence.landings_since))
        )  # fmt: skip
        claims.append(read_unclaimed(connection, history.name, history.start_of(7)))

    assert judged[0] == judged[1]
    before, after = ([x for claim in [each] if claim for x in claim.landings] for each in claims)
    assert (len(before), len(after)) == (21, 2)
    for source in (built[0][0].source(p) for p in range(2)):
        parts = [
            [part for x in landings for part in x.parts if part[0].source == source] for landings in (before, after)
        ]
        assert sum_digests(digest for _, digest in parts[0]) == sum_digests(digest for _, digest in parts[1])
        assert coalesce(r for r, _ in parts[0])[0].start >= coalesce(r for r, _ in parts[1])[0].start


def test_batches_of_a_window_that_is_not_certified_stay(connection: Connection) -> None:
    history, _ = build(connection)
    bump_versions(connection, history.name, [history.start_of(5)])

    joined = roll_up(connection, history, hour=2)

    assert joined == [50, 120, 50], "without ten of the window's own, and the ten after them"
    assert len(landings_of(connection, history, 5)) == 20


def landings_of(connection: Connection, history: History, window: int) -> list[int]:
    rows = connection.execute(
        "SELECT landing_id FROM onceover.landing WHERE pipeline = %s AND window_start = %s",
        [history.name, history.start_of(window)],
    )
    return [row["landing_id"] for row in rows]


def test_batches_that_read_the_same_offsets_stay_apart(connection: Connection) -> None:
    """Kafka's compaction makes a later reading smaller: a range joined from both could not be proved any more."""
    history, writer = build(connection)

    again = writer.read_again(17)

    kept = connection.execute(
        "SELECT batch_id FROM onceover.batch WHERE pipeline = %s AND rolled_up_at IS NOT NULL ORDER BY 1",
        [history.name],
    ).fetchall()
    first = again - history.batches - 1  # the batch before number 1
    assert [row["batch_id"] - first for row in kept] == [17, history.batches + 1]


def test_batches_wait_for_one_that_read_the_same_offsets(connection: Connection) -> None:
    """A driver has read them while Kafka held them, and may still land."""
    history, writer = build(connection, windows=24)
    begun = writer.begin(17)
    (run,) = plan_rollups(rollups.list_old_batches(connection, history.name, starts_after(history, 1)))

    assert not rollups.roll_up(connection, history.name, run)

    connection.execute("UPDATE onceover.batch SET state = 'superseded' WHERE batch_id = %s", [begun])
    assert rollups.roll_up(connection, history.name, run)


def test_batches_that_changed_since_they_were_listed_stay(connection: Connection) -> None:
    history, writer = build(connection, windows=24)
    (run,) = plan_rollups(rollups.list_old_batches(connection, history.name, starts_after(history, 1)))
    bump_versions(connection, history.name, [history.start_of(3)])
    assert not rollups.roll_up(connection, history.name, run), "a window is not certified any more"
    certify_again(connection, history)

    writer.read_again(17)
    certify_again(connection, history)

    assert not rollups.roll_up(connection, history.name, run), "offsets have landed again"
    assert len(landings_of(connection, history, 0)) > 1


def certify_again(connection: Connection, history: History) -> None:
    connection.execute(
        'UPDATE onceover."window" SET version = certified_version WHERE pipeline = %s AND certificate_id IS NOT NULL',
        [history.name],
    )


def test_killed_rollup_changes_nothing(connection: Connection) -> None:
    history, writer = build(connection, windows=24)
    known = writer.known
    before = read_rows(connection, known)
    (run,) = plan_rollups(rollups.list_old_batches(connection, history.name, starts_after(history, 1)))
    with (
        connect(address("postgres"), "killed") as killed,
        ThreadPoolExecutor(1) as pool,
        connection.transaction(),  # once its landings are joined, it waits for this row
    ):
        connection.execute("SELECT 1 FROM onceover.batch_range WHERE batch_id = %s FOR UPDATE", [run[0].batch_id])
        working = pool.submit(rollups.roll_up, killed, history.name, run)
        wait_until_blocked(connection, killed.info.backend_pid)
        connection.execute("SELECT pg_terminate_backend(%s)", [killed.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            working.result(timeout=30)

    assert read_rows(connection, known) == before
    assert roll_up(connection, history, hour=1) == [120]


def wait_until_blocked(connection: Connection, pid: int) -> None:
    deadline = time.monotonic() + 20
    while not connection.execute("SELECT pg_blocking_pids(%s) AS by", [pid]).fetchall()[0]["by"]:
        assert time.monotonic() < deadline, "the rollup never waited"


def test_second_process_is_refused(connection: Connection) -> None:
    held = name()
    with connect(address("postgres"), "first") as first:
        rollups.hold_rollups(first, held)
        with pytest.raises(BusyError, match="another process rolls up batches"):
            rollups.hold_rollups(connection, held, patience_ms=50)
    rollups.hold_rollups(connection, held)
