"""What a batch, a detection, a scrape and lists read of a large ledger: rows of now, whatever lies behind.

`make bench NAME=ledger` measures seconds; these tests count the rows that PostgreSQL read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from bench import ledger_history
from bench.large_ledger import drop_pipeline
from bench.ledger_history import START, History
from bench.ledger_writer import Writer

from onceover.config.endpoints import address
from onceover.detection.deadlines import report_overdue
from onceover.detection.evidence import read_evidence
from onceover.ingest.cutover import plan_cutovers
from onceover.ledger import extras, frontiers, landed_offsets, windows
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.windows import WindowState
from onceover.model.offsets import OffsetRange
from onceover.observability import metric_values
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
NUMBER = uuid.uuid4().hex[:8]
HISTORY = History(f"g{NUMBER}", 10_000, rolled_hours=820, batch_seconds=30, generation=NUMBER)
TABLES = [*ledger_history.TABLES]


@pytest.fixture(scope="module")
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        yield connection


@pytest.fixture(scope="module")
def scraped_before(connection: Connection) -> int:
    """Return how many rows a scrape reads of the other tests' pipelines: it is about all of them."""
    return count_rows_read(connection, lambda: scrape(connection))


@pytest.fixture(scope="module")
def known(connection: Connection, scraped_before: int) -> Iterator[RegisteredPipeline]:
    """Write five weeks of windows, all certified but the last; one of them is reopened."""
    built = ledger_history.build(connection, HISTORY)
    windows.bump_versions(connection, HISTORY.name, [HISTORY.start_of(5_000)])
    connection.execute('ANALYZE onceover."window"')
    yield built
    drop_pipeline(connection, built)


def count_rows_read(connection: Connection, read: Callable[[], object]) -> int:
    """Return how many rows of the large tables were read from the tables, by sequential scans or by an index."""
    counts = []
    for work in (lambda: None, read):
        work()
        connection.execute("SELECT pg_stat_force_next_flush()")
        (row,) = connection.execute(
            "SELECT sum(seq_tup_read + idx_tup_fetch)::bigint AS n FROM pg_stat_user_tables "
            "WHERE schemaname = 'onceover' AND relname = ANY(%s)",
            [TABLES],
        ).fetchall()
        counts.append(int(row["n"]))
    return counts[1] - counts[0]


def list_landed_of_extras(connection: Connection) -> object:
    """Ask what landed of three offsets, though reading whole tables looks cheaper."""
    offsets = [OffsetRange(HISTORY.source(0), start, start + 1) for start in (5, 7_000, 900_000)]
    with connection.transaction():
        connection.execute("SET LOCAL random_page_cost = 1000")
        return extras.list_landed_spans(connection, HISTORY.name, offsets)


READS: dict[str, Callable[[Connection], object]] = {
    "detection": lambda c: read_evidence(c, HISTORY.name, None, None, every=False),
    "open windows": lambda c: windows.count_open_windows(c, HISTORY.name),
    "failed windows": lambda c: windows.list_windows(c, HISTORY.name, WindowState.FAILED),
    "last windows": lambda c: windows.find_last_start(c, HISTORY.name, 10),
    "first to leave Kafka": lambda c: windows.find_next_log_expiry(c, HISTORY.name),
    "overdue windows": lambda c: report_overdue(c, HISTORY.name, 10**13),
    "committed offsets": lambda c: frontiers.read_committed_offsets(c, HISTORY.name, HISTORY.generation),
    "extras": lambda c: extras.list_extras(c, HISTORY.name),
    "landed of extras": list_landed_of_extras,
    "cutovers": lambda c: plan_cutovers(c, HISTORY.name),
    "accounted offsets": lambda c: landed_offsets.read_accounted(c, HISTORY.name),
}


def scrape(connection: Connection) -> object:
    return metric_values.read_signals(connection, timedelta(hours=1))


@pytest.mark.parametrize("what", READS)
def test_read_takes_rows_of_now_only(connection: Connection, known: RegisteredPipeline, what: str) -> None:
    assert count_rows_read(connection, lambda: READS[what](connection)) < 500


def test_scrape_takes_rows_of_now_only(connection: Connection, known: RegisteredPipeline, scraped_before: int) -> None:
    assert count_rows_read(connection, lambda: scrape(connection)) - scraped_before < 500


def test_counts_by_state_are_those_of_the_list(connection: Connection, known: RegisteredPipeline) -> None:
    listed = windows.list_windows(connection, HISTORY.name)

    assert windows.count_by_state(connection, HISTORY.name) == {"open": 1, "closed": 1, "certified": 9_998}
    assert [row["window_start"] for row in listed if row["state"] == "closed"] == [HISTORY.start_of(5_000)]
    assert windows.find_last_start(connection, HISTORY.name, 10) == listed[-10]["window_start"]
    assert windows.find_last_start(connection, HISTORY.name, 20_000) == START


def test_batch_beyond_an_old_hole_reads_nothing_since(connection: Connection, known: RegisteredPipeline) -> None:
    writer = Writer.of(connection, HISTORY, known)
    key = "WHERE pipeline = %s AND kafka_partition = 0"
    before = connection.execute(f"SELECT frontier FROM onceover.kafka_partition {key}", [HISTORY.name]).fetchall()
    connection.execute(f"UPDATE onceover.kafka_partition SET frontier = 42 {key}", [HISTORY.name])

    read = count_rows_read(connection, writer.land_next)

    after = connection.execute(f"SELECT frontier, reach FROM onceover.kafka_partition {key}", [HISTORY.name]).fetchall()
    assert read < 500, "of all batches since"
    assert after[0] == {"frontier": 42, "reach": before[0]["frontier"] + 10}
