"""Migrations that are refused, that come in between a repair, and that are killed halfway."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from tests.integration.cutover import change_contract, compute_expected, list_cutovers
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice, wait_for_lease_end
from tests.integration.program import ONCEOVER, as_json

from onceover.detection.certify import certify_from_ledger
from onceover.detection.evidence import read_evidence
from onceover.errors import BusyError, ContractChangedError, UsageError
from onceover.fault_points import FaultPoint
from onceover.ingest.cutover import cut_over
from onceover.ingest.job import build_driver, open_source
from onceover.ledger import claims, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.drivers import as_driver
from onceover.repair import confirmation
from onceover.repair.job import RepairOutcome, RepairRun
from onceover.repair.progress import WindowProgress
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.largest]


def repair_as(lane: Lane, entry: RegisteredPipeline, request_id: int) -> RepairOutcome:
    """Repair under the registration that the process read when it started."""
    with lane.open() as context:
        request = repair_requests.read_request(context.ledger, lane.name, request_id)
        claimed, accounted = claims.claim(context.ledger, request)
        try:
            repair = RepairRun(lane.spark, context, entry, request, FaultPoint(), WindowProgress(1, 0))
            return repair.run(claimed, accounted)
        finally:
            claims.drop_claims(context.ledger, lane.name, claimed)


def test_migration_is_refused_for_other_keys_and_beside_ingest(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(1)])
    text = lane.toml.read_text()
    for old, new, why in (
        ("window_minutes = 5", "window_minutes = 10", "window_minutes"),
        ('kind = "value.kind"', 'sort = "value.kind"', "key sort is new, key kind is gone"),
        ('kind = "value.kind"', 'kind = "value.amount"', "key kind is of type int, not string"),
        ('{ max = "value.amount" }', '{ min = "value.amount" }', "measure amount_max is a min, not a max"),
    ):
        lane.toml.write_text(text.replace(old, new))
        with pytest.raises(UsageError, match=f"{why}; put it back, or give .* a pipeline name of its own"):
            lane.migrate()
    lane.toml.write_text(text)
    with lane.driver():
        change_contract(lane)
        with pytest.raises(BusyError, match="stop that one first"):
            lane.migrate()
        assert lane.migrate(write=False).new == 2, "where it would lie can be asked at any time"
    with lane.ledger() as reader, reader.transaction():
        reader.execute(f"SELECT count(*) FROM aggregates.{lane.name}")
        with pytest.raises(BusyError, match="nothing was changed, retry when"):
            lane.migrate()
    assert lane.registered().contract_version == 1
    assert lane.migrate().new == 2


def test_repair_begun_before_the_migration_changes_nothing(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n, amount=n) for n in range(5)])
    first, before = lane.detect().request_id or 0, lane.registered()
    assert repair_as(lane, before, first) == RepairOutcome(published=1)
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    with lane.open() as context:
        confirmed = confirmation.confirm(context, first).confirmed
    assert len(confirmed) == 1, "read back by the columns that there were"
    land_twice(lane, [event(n, amount=n) for n in range(4)])
    wrong, request_id = lane.aggregates(), lane.detect().request_id or 0
    with lane.ledger() as ledger:
        seen = read_evidence(ledger, lane.name, None, None, True)
        assert certify_from_ledger(ledger, before, [(seen.evidence[0], ())], "me", "a look") == []
    again = pytest.raises(ContractChangedError, match="version 2 of its contract meanwhile")
    with again:
        repair_as(lane, before, request_id)
    with lane.open() as context, as_driver(context.ledger, lane.name, "test") as epoch:
        with again:
            cut_over(context.ledger, epoch, before, lane.pipeline.contract, lane.registered().columns, "me", "a test")
        with again, open_source(context) as (topic, offsets):
            build_driver(lane.spark, context, epoch, before, topic, offsets, FaultPoint())
    assert lane.aggregates() == wrong
    lane.repair_detected()
    assert lane.aggregates() == compute_expected(lane, cutovers)


def test_killed_migration_leaves_nothing_and_is_repeated(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(5)])
    change_contract(lane)
    command = ("pipelines", "migrate", lane.name, "--reason", "a test")
    with lane.ledger() as reader, lane.ledger() as ledger:
        with reader.transaction():
            reader.execute(f"SELECT count(*) FROM aggregates.{lane.name}")
            process = subprocess.Popen([ONCEOVER, *command], process_group=0, stdout=subprocess.DEVNULL)
            waits = "SELECT count(*) AS n FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
            table = [f"aggregates.{lane.name}"]
            wait_for(lambda: (ledger.execute(waits, table).fetchone() or {"n": 0})["n"] == 1, 120, "it to add a column")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wait_for_lease_end(lane)
        left = "SELECT version, cutovers FROM onceover.contract WHERE pipeline = %s"
        assert ledger.execute(left, [lane.name]).fetchall() == [{"version": 1, "cutovers": []}]
    assert lane.registered().contract_version == 1
    assert len(next(iter(lane.aggregates().values()))) == 3
    done = as_json(*command)
    assert (done["old_version"], done["new_version"], done["added"]) == (1, 2, ["big"])
    assert [c["first_offset"] for c in done["cutovers"]] == [5]
    again = as_json(*command)
    assert (again["old_version"], again["new_version"], again["changed"]) == (2, 2, [])
