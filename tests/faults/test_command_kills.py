"""Commands that decide or change something, killed in the middle of it: nothing of it is there, and the next one does
it whole."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest
from tests.faults.conftest import Jobs
from tests.faults.ends import assert_counts_once, end_lease
from tests.faults.test_ingest_kills import read_group_offset
from tests.integration.lane import Lane, event
from tests.integration.orphans import produce, repair, sum_up
from tests.integration.planted_failures import (
    append,
    count_certified,
    encode_line,
    expire,
    lose_ledger,
    minutes,
    replay,
    skip_to,
)
from tests.integration.program import ONCEOVER, run

from onceover.ledger.root import RootRefusedError
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
Lanes = Callable[..., Lane]
NOON, NOON_TO_TEN = "2026-03-01T12:00Z", ("--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:10Z")
TABLES = ('"window"', "certificate", "finding", "decision", "accepted_loss", "revision", "stored_offset")


def read_ledger(lane: Lane) -> object:
    """Return all that a command may write of the pipeline."""
    with lane.ledger() as ledger:
        rows = [
            ledger.execute(f"SELECT * FROM onceover.{table} WHERE pipeline = %s ORDER BY 1, 2", [lane.name]).fetchall()
            for table in TABLES
        ]
    return lane.aggregates(), rows, read_group_offset(lane)


def wait_for_writer(lane: Lane, table: str, action: Callable[[], None]) -> None:
    """Lock the table against writes, and carry out the action once a transaction waits to do so."""
    waits = "SELECT pid FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
    with lane.ledger() as holding, lane.ledger() as other:
        with holding.transaction():
            holding.execute(f"LOCK TABLE onceover.{table} IN EXCLUSIVE MODE")
            wait_for(lambda: other.execute(waits, [f"onceover.{table}"]).fetchone() is not None, 120, "a write to wait")
            (row,) = other.execute(waits, [f"onceover.{table}"])
            action()
        gone = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        wait_for(lambda: other.execute(gone, [row["pid"]]).fetchone() is None, 30, "the dead one's connection to end")


def kill_while_it_writes(lane: Lane, table: str, *command: str) -> None:
    """Kill `onceover COMMAND` while it writes that table. Nothing of it may remain."""
    before = read_ledger(lane)
    process = subprocess.Popen([ONCEOVER, *command], stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for_writer(lane, table, lambda: os.killpg(process.pid, signal.SIGKILL))
    assert process.wait(30) == -signal.SIGKILL
    assert read_ledger(lane) == before
    end_lease(lane)


def test_killed_commands_change_nothing_and_are_repeated(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(10))
    replay(lane)
    lane.ingest()
    repair(lane)
    with lane.ledger() as ledger:
        ledger.execute(f"UPDATE aggregates.{lane.name} SET events = events + 1")
    kill_while_it_writes(lane, '"window"', "sweep", lane.name)
    assert run("sweep", lane.name).returncode == 1
    repair(lane)
    assert lane.aggregates() == sum_up(range(10))

    restore = ("restore", lane.name, NOON, "--reason", "a test")
    kill_while_it_writes(lane, "revision", *restore)
    assert run(*restore).returncode == 0
    assert lane.aggregates() != sum_up(range(10))
    assert run("repair", lane.name, *NOON_TO_TEN, "--reason", "a test").returncode == 0
    assert lane.aggregates() == sum_up(range(10))

    back = ("offsets", lane.name, "set", "0=5", "--reason", "a test")
    kill_while_it_writes(lane, "offset_change", *back)
    assert run(*back).returncode == 0
    assert_counts_once(lane, range(10))

    produce(lane, range(10, 13))
    skip_to(lane, 13)
    expire(lane, 13)
    produce(lane, range(13, 20))
    with lane.driver() as driver:
        driver.turn()
    (generation,) = {x.record.source.generation for _, x in lane.lines()}
    loss = ("accept-loss", lane.name, f"{generation}-0:10-13", *NOON_TO_TEN, "--reason", "a test")
    kill_while_it_writes(lane, "accepted_loss", *loss)
    assert run(*loss).returncode == 0
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up([*range(10), *range(13, 20)])

    append(lane, 5, encode_line(lane, 13, event(6, amount=99)))
    repair_all(lane)
    (contested,) = next(f for f in lane.explain(0)["findings"] if f["kind"] == "conflict")["evidence"]["contested"]
    (kept,) = [each["hash"] for each in contested["contents"] if each["event_time"][11:16] == "12:03"]
    decide = ("decide", lane.name, NOON, contested["id"], "--keep", kept, "--reason", "a test")
    kill_while_it_writes(lane, "decision", *decide)
    assert run(*decide).returncode == 0
    repair_all(lane)
    assert lane.aggregates() == sum_up([*range(10), *range(13, 20)])
    assert count_certified(lane) == 2


def repair_all(lane: Lane) -> None:
    """Sweep, and repair what detection finds in these windows, until it finds nothing, at most four times."""
    lane.sweep()
    for _ in range(4):
        if request := lane.detect(minutes(0, 10)).request_id:
            lane.repair(request)


def test_killed_rebuild_leaves_the_root_refused_and_is_repeated(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    produce(lane, range(10))
    replay(lane)
    lane.ingest()
    repair(lane)
    lose_ledger()
    rebuild = jobs("rebuild_ledger.py", "--pipeline", lane.name)
    rebuild.start()
    wait_for_writer(lane, '"window"', rebuild.kill)
    end_lease(lane)
    with lane.ledger() as ledger:
        assert ledger.execute("SELECT 1 FROM onceover.batch WHERE pipeline = %s", [lane.name]).fetchone() is None
    with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"):
        lane.ingest()
    assert lane.rebuild().written.records == 10
    assert_counts_once(lane, range(10))
