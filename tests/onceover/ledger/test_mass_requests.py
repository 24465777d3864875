"""Forty thousand windows requested, claimed and confirmed, while batches land in them: none waits for long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import psutil
import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, start_of
from bench.late_record import land_late_record

from onceover.config.endpoints import address
from onceover.ledger import claims, drivers, repair_requests
from onceover.ledger.database import Connection, connect
from onceover.ledger.drivers import Epoch
from onceover.repair.confirmation import reread_published
from onceover.repair.groups import MAX_WINDOWS, group_windows

pytestmark = [pytest.mark.stack, pytest.mark.rare]
NAME, WINDOWS = "mass", 40_000


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, WINDOWS, rows=True)
    yield built
    large_ledger.drop(connection, built)


class LateRecords:
    """Lands one late record after the other, each in another window, until the block ends; `longest` is the longest
    landing in seconds."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch, self._stop, self._pool = epoch, Event(), ThreadPoolExecutor(1)
        self.landed, self.longest = 0, 0.0

    def __enter__(self) -> LateRecords:
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        self._running.result()

    def _run(self) -> None:
        with connect(address("postgres"), "test") as connection:
            while not self._stop.wait(0.01):
                began = time.monotonic()
                land_late_record(connection, self._epoch, NAME, 7_919 * self.landed % WINDOWS, self.landed)
                self.longest = max(self.longest, time.monotonic() - began)
                self.landed += 1


def count_cpu_seconds(connection: Connection) -> float:
    """Return what this process and its server's have used, whatever else the machine does."""
    own, server = time.process_time(), psutil.Process(connection.info.backend_pid).cpu_times()
    return float(own + server.user + server.system)


@pytest.mark.largest
def test_landings_go_on_beside_a_request_for_all_windows(connection: Connection, ledger: LargeLedger) -> None:
    epoch = drivers.acquire(connection, NAME, "test")
    with LateRecords(epoch) as late:
        took, began = {}, count_cpu_seconds(connection)

        def note(what: str) -> None:
            nonlocal began
            now = count_cpu_seconds(connection)
            took[what], began = round(now - began, 1), now

        request_id = repair_requests.create_request(
            connection, NAME, "kim", "a test", {start_of(n): [] for n in range(WINDOWS)}, unblock=True
        )
        note("requested")
        request = repair_requests.read_request(connection, NAME, request_id)
        assert len(request.window_starts) == WINDOWS
        note("read")
        claimed = 0
        for starts in group_windows(request.window_starts, lambda _: 0, 1):
            held, _ = claims.claim(connection, replace(request, window_starts=tuple(starts)))
            claims.renew(connection, NAME, held)
            claims.drop_claims(connection, NAME, held)
            claimed += len(held)
        assert claimed == WINDOWS
        note("claimed")
        publish_all(connection, request_id)
        note("published")
        rows = reread_published(connection, ledger.known, request_id)
        note("confirmed")
    confirmed = [row for row in rows if row["state"] == "confirmed"]
    assert len(confirmed) >= WINDOWS - late.landed
    assert late.landed > 100
    assert late.longest < 10, f"ingest gives up after five waits of a minute; {took}"
    assert max(took["requested"], took["read"], took["confirmed"]) < 24, took
    assert took["claimed"] < 96, f"{WINDOWS // MAX_WINDOWS} groups, each with its evidence; {took}"


def publish_all(connection: Connection, request_id: int) -> None:
    """Have each window's certificate be of this request's repair."""
    connection.execute(
        """
        UPDATE onceover.certificate c SET repair_id = r.repair_id FROM onceover.repair r
        WHERE r.request_id = %s AND c.pipeline = r.pipeline AND c.window_start = r.window_start
        """,
        [request_id],
    )
    connection.execute("UPDATE onceover.repair SET state = 'published' WHERE request_id = %s", [request_id])
