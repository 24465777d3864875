"""PostgreSQL that dies, loses a connection, is cut off or fails over while a driver or a repair is at work on it."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.conftest import Jobs, hold, hold_ingest
from tests.faults.ends import assert_counts_once, end_lease
from tests.faults.proxy import Proxy
from tests.integration.extras import produce, repair, sum_up
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import open_server
from tests.integration.planted_failures import replay

from onceover.config.endpoints import address
from onceover.errors import UnreachableError
from onceover.fault_points import RepairStep, Step
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


def test_postgres_killed_in_mid_batch_ends_the_driver(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, Step.APPENDED)
    stack.kill_part("postgres")
    stack.start_part("postgres")
    ingest.resume()
    assert ingest.wait(60) == 75
    assert "PostgreSQL at" in ingest.read_last_line()
    assert len(lane.lines()) == 10, "its append stays"
    assert lane.aggregates() == {}
    assert_counts_once(lane, range(10))


@contextmanager
def locked_windows(lane: Lane) -> Iterator[Callable[[], int]]:
    """Lock windows against writes; yield a function that ends the connection that waits for them, and returns how many
    locks that connection held: it was inside a transaction that had written."""
    of_waiting = "SELECT pid FROM pg_locks WHERE relation = 'onceover.window'::regclass AND NOT granted"
    with lane.ledger() as holding, lane.ledger() as other, holding.transaction():
        holding.execute('LOCK TABLE onceover."window" IN EXCLUSIVE MODE')

        def terminate() -> int:
            wait_for(lambda: other.execute(of_waiting).fetchone() is not None, 60, "a transaction to wait")
            (held,) = other.execute(f"SELECT pid, count(*) AS n FROM pg_locks WHERE pid IN ({of_waiting}) GROUP BY pid")
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [held["pid"]])
            return int(held["n"]) - 1

        yield terminate


def test_connection_cut_inside_an_increment_undoes_it(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, Step.APPENDED)
    with locked_windows(lane) as terminate:
        ingest.resume()
        assert terminate() > 0
    assert ingest.wait(60) == 75
    assert "PostgreSQL at" in ingest.read_last_line()
    assert lane.aggregates() == {}
    assert_counts_once(lane, range(10))


def test_connection_cut_inside_a_publish_undoes_it(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    produce(lane, range(10))
    replay(lane)
    lane.ingest()
    wrong = lane.aggregates()
    assert wrong != sum_up(range(10))
    request = lane.detect().request_id
    repair = hold(jobs("repair.py", "--pipeline", lane.name, "--request", str(request)), RepairStep.STAGED)
    with locked_windows(lane) as terminate:
        repair.resume()
        assert terminate() > 0
    assert repair.wait(60) == 75
    assert "PostgreSQL at" in repair.read_last_line()
    assert lane.aggregates() == wrong
    lane.repair(request)
    assert_counts_once(lane, range(10))


def test_driver_cut_off_from_its_ledger_is_replaced(lanes: Lanes, jobs: Jobs) -> None:
    """The network is half open: no byte passes, and neither side sees the connection end."""
    lane = lanes()
    produce(lane, range(10))
    is_open, held = threading.Event(), threading.Event()
    is_open.set()

    def pass_or_hold(data: bytes) -> bytes:
        if not is_open.is_set():
            held.set()
            is_open.wait()
        return data

    own = address("postgres")
    server = own.partition("@")[2].partition("/")[0]
    with Proxy(server, pass_or_hold, pass_or_hold) as proxy:
        environment = {"ONCEOVER_POSTGRES": own.replace(server, proxy.address)}
        ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.APPENDED, environment=environment)
        is_open.clear()
        ingest.resume()
        assert held.wait(60)
        assert_counts_once(lane, range(10))
        is_open.set()
        assert ingest.wait(60) != 0
    assert "taken over" in ingest.read_log()
    assert lane.aggregates() == sum_up(range(10))
    assert lane.detect().judged == 0


def copy_server() -> tuple[Path, Path]:
    """Copy the running server's files, as a standby gets them that falls behind from now on; return both folders."""
    with open_server() as server:
        ((folder,),) = server.execute("SELECT current_setting('data_directory')").fetchall()
        data = Path(folder)
        behind = data.with_name("behind")
        server.execute("SELECT pg_backup_start('standby', fast => true)")
        # A file may vanish while it is copied, which the log of changes makes good.
        subprocess.run(["cp", "-a", str(data), str(behind)], check=False, stderr=subprocess.DEVNULL)
        ((label,),) = server.execute("SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)").fetchall()
        shutil.rmtree(behind / "pg_wal")
        subprocess.run(["cp", "-a", str(data / "pg_wal"), str(behind / "pg_wal")], check=True)
    (behind / "backup_label").write_text(label)
    (behind / "postmaster.pid").unlink(missing_ok=True)
    owner = data.stat()
    shutil.chown(behind / "backup_label", owner.st_uid, owner.st_gid)
    return data, behind


def test_failover_that_loses_transactions_loses_no_record(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    produce(lane, range(10))
    with pytest.raises(UnreachableError), lane.driver() as driver:  # noqa: PT012
        driver.turn()
        data, behind = copy_server()
        produce(lane, range(10, 20))
        driver.turn()
        assert lane.aggregates() == sum_up(range(20))
        stack.kill_part("postgres")
        data.rename(data.with_name("lost"))
        behind.rename(data)
        stack.start_part("postgres")
        assert lane.aggregates() == sum_up(range(10)), "what was committed last is lost"
        driver.turn()
    end_lease(lane)
    lane.turn()
    repair(lane)  # reads again what the lost transactions had landed: the offset store is past it
    assert_counts_once(lane, range(20))
