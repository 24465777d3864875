"""The ledger lost whole, and rebuilt from raw: the same windows with the same counts and digests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from tests.integration.lane import Lane, Lanes, event
from tests.integration.planted_failures import lose_ledger, replay
from tests.integration.program import run

from onceover.config.endpoints import address
from onceover.ledger.database import connect
from onceover.ledger.migrate import upgrade_schema
from onceover.ledger.root import RootRefusedError

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def rebuild(lane: Lane) -> subprocess.CompletedProcess[str]:
    return run("ledger", "rebuild", lane.name, "--json")


def read_certificates(lane: Lane) -> Mapping[Any, tuple[Any, ...]]:
    """Return the certificate's digest and the aggregates of each window."""
    rows = lane.query(
        """
        SELECT w.window_start, c.records, c.high1, c.low1, c.high2, c.low2, c.aggregate_rows, c.aggregate_hash
        FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
        WHERE w.pipeline = %s AND c.version = w.version
        """,
        [lane.name],
    )
    return {row["window_start"]: tuple(row.values())[1:] for row in rows}


def certify(lane: Lane) -> Mapping[Any, tuple[Any, ...]]:
    lane.ingest()
    if (request_id := lane.detect().request_id) is not None:
        lane.repair(request_id)
    return read_certificates(lane)


def test_lost_ledger_is_rebuilt_from_raw_and_certifies_the_same(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=40)
    for kafka_partition in (0, 1):
        lane.produce([event(n, amount=n) for n in range(60)], kafka_partition)
        lane.produce([b"rubbish", event(3, kind="late")], kafka_partition)
    replay(lane)  # a batch landed twice: raw holds every line of it twice
    before, aggregates, raw = certify(lane), lane.aggregates(), lane.raw()
    assert len(before) == 12
    assert rebuild(lane).returncode == 2, "a ledger that knows the pipeline is left alone"
    with connect(address("postgres"), "test") as ledger:
        ledger.execute("DROP SCHEMA onceover CASCADE")
        ledger.execute(f"UPDATE aggregates.{lane.name} SET events = events + 1")
    done = rebuild(lane)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["windows"], found["records"], found["holes"]) == (12, 124, [])
    assert (found["files"], found["landings"]) == (13, 13), "a window's file is one landing, quarantine another"
    assert certify(lane) == before
    assert lane.aggregates() == aggregates
    assert lane.raw() == raw, "what the log holds too is not read again"
    assert rebuild(lane).returncode == 2, "twice is refused"
    assert lane.audit()["equal"]


@pytest.mark.largest
@pytest.mark.parametrize("number", [0, 1], ids=["the first", "one in between"])
def test_offsets_missing_in_raw_are_holes_and_read_again(lanes: Lanes, number: int) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(20)])
    before, aggregates = certify(lane), lane.aggregates()
    lost = sorted(name for name in lane.raw())[number]
    lose_ledger()
    lane.store().remove(f"{lane.layout.raw_root}/{lane.name}/{lost}")
    found = json.loads(rebuild(lane).stdout)
    assert (found["windows"], found["expired"], found["records"], len(found["holes"])) == (3, 1, 15, 1)
    assert found["batches"] == 1
    with lane.driver() as driver:
        assert not driver.turn().every_window_closed, "the missing records are unknown"
    lane.repair(lane.detect().request_id or 0)  # reads the hole again
    assert certify(lane) == before
    assert lane.aggregates() == aggregates


def test_ingest_on_an_empty_ledger_is_refused_then_rebuilt(lanes: Lanes) -> None:
    lane = lanes(offset_store="postgres")
    lane.produce([event(n) for n in range(10)])
    before, aggregates = certify(lane), lane.aggregates()
    lose_ledger()
    upgrade_schema(address("postgres"))
    with pytest.raises(RootRefusedError, match=f"onceover ledger rebuild {lane.name}"):
        lane.ingest()  # its offsets were in the ledger: it would read all again, on top of the existing rows
    assert rebuild(lane).returncode == 0
    lane.ingest()
    detection = lane.detect()
    assert len(detection.failed) == 2, "their counts are unproved"
    lane.repair(detection.request_id or 0)
    assert lane.aggregates() == aggregates
    assert {start: held[:5] for start, held in read_certificates(lane).items()} == {s: h[:5] for s, h in before.items()}
