"""Commands that change something, killed in the middle of it: nothing of it is there, and the next one does
it whole."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest
from tests.faults.conftest import Jobs
from tests.faults.ends import assert_counts_once, end_lease, read_everything
from tests.integration.compaction import spoil_rows
from tests.integration.extras import produce, repair, sum_up
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import (
    count_certified,
    expire,
    lose_ledger,
    minutes,
    replay,
    skip_to,
)
from tests.integration.program import ONCEOVER, run

from onceover.ledger.root import RootRefusedError
from onceover.ledger.takings import list_takings, take_windows
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
NOON, NOON_TO_TEN = "2026-03-01T12:00Z", ("--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:10Z")


def of_table(name: str) -> str:
    """Return the statement that keeps every writer of the table out."""
    return f"LOCK TABLE onceover.{name} IN EXCLUSIVE MODE"


def wait_for_writer(lane: Lane, lock: str, action: Callable[[], None]) -> None:
    """Take the lock, and carry out the action once a transaction waits for it."""
    waits = "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    with lane.ledger() as holding, lane.ledger() as other:
        key = [holding.info.backend_pid]
        with holding.transaction():
            holding.execute(lock)
            wait_for(lambda: other.execute(waits, key).fetchone() is not None, 120, "a write to wait")
            (row,) = other.execute(waits, key)
            action()
        gone = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        wait_for(lambda: other.execute(gone, [row["pid"]]).fetchone() is None, 30, "the dead one's connection to end")


def kill_while_it_waits(lane: Lane, lock: str, *command: str) -> None:
    """Kill `onceover COMMAND` while it waits for that lock. Nothing of it may remain."""
    before = read_everything(lane)
    process = subprocess.Popen([ONCEOVER, *command], stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for_writer(lane, lock, lambda: os.killpg(process.pid, signal.SIGKILL))
    assert process.wait(30) == -signal.SIGKILL
    assert read_everything(lane) == before
    end_lease(lane)


@pytest.mark.largest
def test_killed_commands_change_nothing_and_are_repeated(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(10))
    replay(lane)
    lane.ingest()
    repair(lane)
    spoil_rows(lane)
    kill_while_it_waits(lane, of_table('"window"'), "sweep", lane.name)
    assert run("sweep", lane.name).returncode == 1
    take_under_kills(lane)
    repair(lane)
    assert lane.aggregates() == sum_up(range(10))

    restore = ("restore", lane.name, NOON, "--reason", "a test")
    kill_while_it_waits(lane, of_table("revision_row"), *restore)
    assert run(*restore).returncode == 0
    assert lane.aggregates() != sum_up(range(10))
    assert run("repair", lane.name, *NOON_TO_TEN, "--reason", "a test").returncode == 0
    assert lane.aggregates() == sum_up(range(10))

    back = ("offsets", lane.name, "set", "0=5", "--reason", "a test")
    kill_while_it_waits(lane, of_table("action"), *back)
    assert run(*back).returncode == 0
    assert_counts_once(lane, range(10))

    produce(lane, range(10, 13))
    skip_to(lane, 13)
    expire(lane, 13)
    produce(lane, range(13, 20))
    lane.turn()
    loss = ("accept-loss", lane.name, f"{lane.source()}:10-13", *NOON_TO_TEN, "--reason", "a test")
    kill_while_it_waits(lane, of_table("accepted_loss"), *loss)
    assert run(*loss).returncode == 0
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == sum_up([*range(10), *range(13, 20)])

    assert count_certified(lane) == 2


def take_under_kills(lane: Lane) -> None:
    """Take both windows over from another person, and release them; each is killed before its lock, note and rows."""
    with lane.ledger() as ledger:
        take_windows(ledger, lane.name, minutes(0, 10), "kim", "INC-1")
    lock = f"SELECT pg_advisory_xact_lock(hashtextextended('onceover take {lane.name}', 0))"
    rows = f"SELECT FROM onceover.\"window\" WHERE pipeline = '{lane.name}' FOR UPDATE"
    steps = (lock, of_table("action"), rows)
    take = ("take", lane.name, *NOON_TO_TEN, "--ticket", "INC-2", "--reason", "a test")
    for command, after in ((take, [(2, "INC-2")]), (("take", lane.name, *NOON_TO_TEN, "--release"), [])):
        for step in steps:
            kill_while_it_waits(lane, step, *command)
        assert run(*command).returncode == 0
        with lane.ledger() as ledger:
            assert [(each.windows, each.ticket) for each in list_takings(ledger, lane.name)] == after


@pytest.mark.largest
def test_killed_rebuild_leaves_the_root_refused_and_is_repeated(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    produce(lane, range(10))
    replay(lane)
    lane.ingest()
    repair(lane)
    lose_ledger()
    rebuild = jobs("rebuild_ledger.py", "--pipeline", lane.name)
    rebuild.start()
    wait_for_writer(lane, of_table('"window"'), rebuild.kill)
    end_lease(lane)
    assert lane.query("SELECT FROM onceover.batch WHERE pipeline = %s", [lane.name]) == []
    with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"):
        lane.ingest()
    assert lane.rebuild().written.records == 10
    assert_counts_once(lane, range(10))
