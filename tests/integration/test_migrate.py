"""A changed contract cut over to on the real stack: each record by its own contract for ever, both sides certified."""

from __future__ import annotations

import json

import pytest
from tests.integration.cutover import (
    assert_proved,
    change_contract,
    compute_expected,
    list_cutovers,
    list_ranges,
    produce_both,
    read_all,
)
from tests.integration.events import event
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, list_gaps, replay, skip_to

from onceover.errors import ContractChangedError, UsageError
from onceover.fault_points import Step

pytestmark = [pytest.mark.stack, pytest.mark.rare]


def test_cutover_is_certified_on_both_sides_without_repair(lanes: Lanes) -> None:
    lane = lanes(partitions=2, idle_after="1h")
    produce_both(lane, 0, 23)
    read_all(lane)
    assert lane.detect().certified == 2  # up to 12:10, the watermark is at 12:12
    old_toml = lane.toml.read_text()
    assert lane.migrate().changed == (), "nothing has changed"
    change_contract(lane)
    with pytest.raises(ContractChangedError, match=f"onceover pipelines migrate {lane.name}"):
        read_all(lane)
    planned = lane.migrate(write=False)
    assert (planned.old, planned.new, planned.added, list_cutovers(planned)) == (1, 2, ("big",), {0: 23, 1: 23})
    assert planned.changed == ("event_time", "measures")
    assert lane.registered().contract_version == 1
    assert lane.migrate() == planned
    again = lane.migrate()
    assert (again.old, again.new, again.changed) == (2, 2, ())

    new_toml = lane.toml.read_text()
    lane.toml.write_text(old_toml)
    with pytest.raises(ContractChangedError, match="from version 2"):
        read_all(lane)
    lane.toml.write_text(new_toml)
    produce_both(lane, 23, 60)
    read_all(lane)
    detection = lane.detect()
    assert (detection.failed, detection.findings, detection.certified) == ((), (), 8), "up to 12:50"
    assert lane.aggregates() == compute_expected(lane, {0: 23, 1: 23})
    assert lane.aggregates()[(0.0, "a")][3] is None, "records before the cutover have no count of big ones"
    kept = lane.query(
        "SELECT version, who, why FROM onceover.contract WHERE pipeline = %s ORDER BY version", [lane.name]
    )
    stated = lane.query(
        "SELECT contract_version AS v, count(*) AS n FROM onceover.certificate WHERE pipeline = %s GROUP BY 1 "
        "ORDER BY 1",
        [lane.name],
    )
    assert [tuple(row.values()) for row in kept] == [(1, None, None), (2, "me", "a test")]
    assert [tuple(row.values()) for row in stated] == [(1, 2), (2, 8)]
    lane.toml.write_text(new_toml.replace('idle_after = "1h"', 'idle_after = "1ms"'))
    lane.ingest()
    lane.detect()
    assert count_certified(lane) == 13
    assert_proved(lane, 0, 20, 60)
    assert read_contracts(lane) == [
        ("V1", ["k_kind", "m_events", "m_amount_sum", "m_amount_max"]),
        ("V2", ["k_kind", "m_events", "m_amount_sum", "m_amount_max", "m_big"]),
    ]


def read_contracts(lane: Lane) -> list[tuple[str, list[str]]]:
    """Read the contracts beside raw: the version of each that lines name, with the columns of its lines."""
    client, folder = lane.hdfs(), lane.layout.contract_folder
    named = {line.contract for _, line in lane.lines()}
    contracts = []
    for name in sorted(client.list(folder)):
        with client.read(f"{folder}/{name}") as reader:
            content = json.load(reader)
        assert f"{content['name']}.json" == name
        assert content["name"] in named
        contracts.append((name.partition("-")[0], list(content["columns"])))
    return contracts


def test_failure_beside_a_cutover_is_repaired_by_own_contract(lanes: Lanes) -> None:
    lane = lanes(partitions=2, idle_after="1h")
    produce_both(lane, 0, 10)
    replay(lane)
    lane.produce([event(n, amount=n) for n in range(10, 15)])
    kill_after(lane, Step.INCREMENTED)  # its lines are in raw, and its counts in the aggregates
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    assert cutovers == {0: 15, 1: 10}, "a range whose reading began keeps the contract that dated its lines"
    produce_both(lane, 10, 20)
    replay(lane)  # the five, under the old contract
    replay(lane)  # the rest, under the new one
    lane.toml.write_text(lane.toml.read_text().replace('idle_after = "1h"', 'idle_after = "1ms"'))
    lane.ingest()
    found = list_ranges(lane)
    assert all(end <= cutovers[p] if version == 1 else start >= cutovers[p] for version, p, start, end in found), found
    assert [entry for entry in found if entry[1:] == (0, 10, 15)] == [(1, 0, 10, 15)] * 2
    assert lane.aggregates() != compute_expected(lane, cutovers)
    detection = lane.detect()
    kinds = {str(f.kind) for failed in detection.failed for f in failed.findings}
    assert {"duplicated", "unaccounted bytes", "aggregate mismatch"} <= kinds
    done = lane.repair(detection.request_id)
    assert (len(done.confirmed), done.failed) == (len(detection.failed), ())
    assert lane.aggregates() == compute_expected(lane, cutovers)
    assert lane.detect().judged == 0
    assert_proved(lane, 0, 10, 15)


@pytest.mark.largest
def test_offsets_set_back_below_the_cutover_use_the_old_contract(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=6)
    produce_both(lane, 0, 8)
    lane.ingest()
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    produce_both(lane, 8, 16)
    lane.ingest()
    lane.detect()
    right, windows = lane.aggregates(), {name for name, _ in lane.lines()}
    assert right == compute_expected(lane, cutovers)
    lane.set_offsets({0: 3, 1: 12})
    count = len(list_ranges(lane))
    read_all(lane)
    assert list_ranges(lane)[count:] == [(1, 0, 3, 8), (2, 0, 8, 11), (2, 1, 12, 15), (2, 0, 11, 16), (2, 1, 15, 16)]
    assert {name for name, _ in lane.lines()} == windows
    detection = lane.detect()
    assert {str(f.kind) for failed in detection.failed for f in failed.findings} >= {"duplicated"}
    lane.repair(detection.request_id)
    assert lane.aggregates() == right
    assert_proved(lane, 0, 5)


@pytest.mark.largest
def test_hole_across_the_cutover_is_reread_in_two_parts(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, amount=n) for n in range(5)])
    read_all(lane)
    lane.produce([event(n, amount=n) for n in range(5, 10)])
    kill_after(lane, Step.INCREMENTED)
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    assert cutovers == {0: 10}
    lane.produce([event(n, amount=n) for n in range(10, 25)])
    skip_to(lane, 17)
    lane.turn()
    assert list_gaps(lane) == [(5, 17, "lost")]
    lane.toml.write_text(lane.toml.read_text().replace("value.at + 60000", "value.at + 120000"))
    with pytest.raises(UsageError, match=f"onceover holes {lane.name}"):
        lane.migrate()
    lane.toml.write_text(lane.toml.read_text().replace("value.at + 120000", "value.at + 60000"))
    detection = lane.detect()
    assert [one.rpartition(":")[2] for one in detection.read_again] == ["5-17"]
    lane.repair(detection.request_id)
    assert list_gaps(lane) == []
    lane.ingest()
    if request_id := lane.detect().request_id:
        lane.repair(request_id)
    assert lane.aggregates() == compute_expected(lane, cutovers)
    assert {(1, 0, 5, 10), (2, 0, 10, 17)} <= set(list_ranges(lane))
    assert_proved(lane, 5, 10)
