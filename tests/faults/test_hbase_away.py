"""HBase that dies, is disabled or loses a cell under raw, while batches append and repairs read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import happybase
import pytest
from tests.faults.conftest import Jobs, hold, hold_ingest
from tests.faults.ends import assert_counts_once, fail_attempt, go_on
from tests.integration.events import event
from tests.integration.extras import land
from tests.integration.lane import Lanes
from tests.integration.lane_fixtures import put_on
from tests.integration.planted_failures import count_certified, land_twice, minutes
from tests.integration.program import run

from onceover.config.endpoints import address
from onceover.errors import TerminalError
from onceover.fault_points import RepairStep, Step
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.largest]
TABLE = "onceover_raw"


@pytest.fixture
def lanes(lanes: Lanes, stack: Stack) -> Lanes:
    return put_on("hbase", lanes, stack)


@contextmanager
def connect() -> Iterator[happybase.Connection]:
    host, port = address("hbase").split(":")
    with closing(happybase.Connection(host, int(port), timeout=60_000)) as connection:
        yield connection


@pytest.mark.parametrize(
    ("part", "step"), [("hbase-thrift", Step.BEGUN), ("hbase", Step.BEGUN), ("hbase", Step.APPENDED)]
)
def test_server_killed_under_a_batch_costs_no_record(
    lanes: Lanes, jobs: Jobs, stack: Stack, part: str, step: Step
) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, step)
    stack.kill_part(part)
    try:
        if step is Step.BEGUN:
            fail_attempt(ingest)
    finally:
        stack.up(["hbase"])
    if step is Step.APPENDED:
        ingest.kill()  # what HBase has acknowledged is in its log on HDFS, and is read again all the same
        assert_counts_once(lane, range(10))
    else:
        go_on(lane, ingest, range(10))


def test_repair_whose_region_server_died_is_done_again(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    land_twice(lane, [event(n, amount=n) for n in range(15)])
    request = lane.detect().request_id or 0
    repair = hold(jobs("repair.py", "--pipeline", lane.name, "--request", str(request)), RepairStep.CLAIMED)
    stack.kill_part("hbase")
    repair.kill()
    stack.up(["hbase"])
    assert len(lane.repair(request).confirmed) == 3
    assert lane.aggregates() == {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}
    assert count_certified(lane) == 3


def test_disabled_table_fails_the_attempt_alone(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, Step.BEGUN)
    with connect() as connection:
        connection.disable_table(TABLE)
        try:
            fail_attempt(ingest)
        finally:
            connection.enable_table(TABLE)
    assert TABLE in ingest.read_log(), "the message names the table"
    go_on(lane, ingest, range(10))


def test_lost_cell_fails_its_window_alone_and_is_read_again(lanes: Lanes) -> None:
    lane = lanes(most=2)
    lane.land([event(n, amount=n) for n in range(15)])
    assert lane.detect().certified == 3
    path = lane.window_file(5)
    with connect() as connection:
        table = connection.table(TABLE)
        cells = table.row(f"n:{path}".encode())[b"d:b"].split(b" ")[0]
        rows = [row for row, _ in table.scan(row_prefix=cells)]
        assert len(rows) > 2
        table.delete(rows[1])
    request = lane.detect(minutes(0, 15), force=True).request_id
    failed = lane.repair(request).failed
    assert [window for window, _ in failed] == ["2026-03-01T12:05Z"]
    assert "lacks its bytes" in failed[0][1]
    audited = run("audit", lane.name, "--from", "2026-03-01T12:05Z", "--to", "2026-03-01T12:10Z")
    assert audited.returncode == 1, "a retry fails again"
    assert re.search("lacks its bytes.*nothing was compared", audited.stderr)
    plan, done = lane.reread(5)
    assert plan.damage is None
    assert done is not None
    assert done.confirmed == ("2026-03-01T12:05Z",)
    assert lane.aggregates() == {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}
    assert any(name.startswith("damaged/2026-03-01/1205.log.") for name in lane.raw()), "the damaged file is kept"


def test_changed_raw_store_is_refused(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    lane.toml.write_text(lane.toml.read_text().replace('raw_store = "hbase"', 'raw_store = "hdfs"'))
    with pytest.raises(
        TerminalError, match=r'raw of .* is in the store "hbase", and the TOML names raw_store = "hdfs"'
    ):
        lane.ingest()
    with pytest.raises(TerminalError, match='is in the store "hbase"'):
        lane.detect()
    span = ("--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:05Z")
    for command in (("verify", lane.name, "2026-03-01T12:00Z"), ("audit", lane.name, *span)):
        done = run(*command)
        assert (done.returncode, 'is in the store "hbase"' in done.stderr) == (1, True), done.stderr
    explained = lane.explain_text(0)
    assert "not judged now" in explained.lower()
    assert "missing file" not in explained, "the store of the TOML holds nothing, and nothing is lost"
    lane.toml.write_text(lane.toml.read_text().replace('raw_store = "hdfs"', 'raw_store = "hbase"'))
    assert (lane.detect().certified, count_certified(lane)) == (0, 2)


def test_compaction_is_refused_by_name(lanes: Lanes) -> None:
    lane = land(lanes, 10)
    done = run("compact", lane.name, "--older-than", "0s")
    assert done.returncode == 2
    assert "only raw on HDFS is compacted" in done.stderr
