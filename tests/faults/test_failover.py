"""A standby of PostgreSQL that takes over the address without the last transactions of the server that died."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.faults.ends import assert_counts_once, end_lease
from tests.integration.extras import produce, repair, sum_up
from tests.integration.lane import Lanes
from tests.integration.other_ledger import open_server

from onceover.errors import UnreachableError
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


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
