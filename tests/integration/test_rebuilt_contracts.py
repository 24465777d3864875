"""Contracts that a ledger lost: found again beside raw and in its lines, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.integration.cutover import (
    assert_proved,
    change_contract,
    compute_expected,
    list_cutovers,
    list_ranges,
    produce_both,
)
from tests.integration.events import Rows, event, moment
from tests.integration.extras import accept_loss, repair
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import copy_ledger
from tests.integration.planted_failures import append, count_certified, expire, list_gaps, lose_ledger, minutes
from tests.integration.program import succeed
from tests.integration.releases import accept_nameless, make_nameless, release
from tests.integration.releases import compute_expected as compute_released
from tests.integration.test_ledger_rebuild import certify
from tests.raw_lines import change_record, encode_append

from onceover.errors import ContractChangedError, TerminalError, UsageError
from onceover.model.offsets import KafkaPartition
from onceover.model.window import format_moment

pytestmark = [pytest.mark.stack, pytest.mark.largest]


def list_contract_files(lane: Lane) -> list[str]:
    return sorted(lane.hdfs().list(lane.layout.contract_folder))


def repair_all(lane: Lane) -> int:
    """Repair all windows by force; return how many records counted by VALUE."""
    done = lane.repair_detected(minutes(0, 60), force=True)
    assert done.failed == ()
    (row,) = lane.query(
        'SELECT sum(c.by_value) AS n FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id) '
        "WHERE w.pipeline = %s",
        [lane.name],
    )
    return int(row["n"])


def migrated(lane: Lane) -> Mapping[int, int]:
    """Land records of two contracts in both Kafka partitions; return the cutovers."""
    produce_both(lane, 0, 13)
    lane.ingest()
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    produce_both(lane, 10, 18)
    lane.land([b"rubbish"], 1)
    return cutovers


def test_rebuilt_ledger_has_the_contracts_and_cutovers_of_raw(lanes: Lanes) -> None:
    lane = lanes(partitions=2, most=12)
    cutovers = migrated(lane)
    right, before, registered = lane.aggregates(), certify(lane), lane.registered()
    assert right == compute_expected_of(lane, cutovers)
    lose_ledger()
    assert lane.rebuild().written.holes == ()
    again = lane.registered()
    assert (again.versions, again.cutovers) == (registered.versions, registered.cutovers)
    found = list_ranges(lane)
    assert {version for version, *_ in found} == {1, 2}
    assert all(end <= cutovers[p] if version == 1 else start >= cutovers[p] for version, p, start, end in found), found
    assert certify(lane) == before
    assert (repair_all(lane), lane.aggregates()) == (0, right)
    assert_proved(lane, 0, 10)
    lane.toml.write_text(lane.toml.read_text().replace("value.at + 60000", "value.at + 120000"))
    assert lane.migrate().new == 3
    produce_both(lane, 18, 20)
    lane.ingest()
    assert [name[:3] for name in list_contract_files(lane)] == ["V1-", "V2-", "V3-"]


def compute_expected_of(lane: Lane, cutovers: Mapping[int, int]) -> Rows:
    """Return the log's aggregates as `compute_expected` does, without the record that is none."""
    log = lane.log()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lane, "log", lambda _: {at: held for at, held in log.items() if held[1] != b"rubbish"})
        return compute_expected(lane, cutovers)


def test_rebuild_needs_the_contract_of_each_line(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    old = lane.toml.read_text()
    migrated(lane)
    right, new = lane.aggregates(), lane.toml.read_text()
    first, second = list_contract_files(lane)
    folder, client = lane.layout.contract_folder, lane.hdfs()
    lose_ledger()

    lane.toml.write_text(old)
    with pytest.raises(ContractChangedError, match=rf"{second}, the newest contract.*pipelines migrate"):
        lane.rebuild()
    client.rename(f"{folder}/{second}", f"/{second}")
    with pytest.raises(TerminalError, match=rf"raw has 17 lines of {second[:-5]}, as in \S+log.*put {folder}"):
        lane.rebuild()
    client.rename(f"/{second}", f"{folder}/{second}")
    lane.toml.write_text(new)
    client.rename(f"{folder}/{first}", f"/{first}")
    with pytest.raises(TerminalError, match="has version 2 of the contract and lacks version 1"):
        lane.rebuild()
    client.rename(f"/{first}", f"{folder}/{first}")

    held = next(line for _, line in lane.lines() if line.event_ms is not None)
    other = replace(change_record(held, offset=7_000), contract="V9-0123456789abcdef")
    stranger = change_record(other, source=KafkaPartition("0badcafe", 0))
    path = lane.window_file(0)
    whole = lane.read(path)
    append(lane, 0, encode_append(stranger) + encode_append(other))
    with pytest.raises(TerminalError, match=rf"raw has 1 lines of V9-0123456789abcdef, as in {path}"):
        lane.rebuild()
    client.write(path, whole + encode_append(stranger), overwrite=True)
    assert lane.rebuild().foreign == 1, "its contract is not asked"
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == right


def test_released_lines_keep_their_contract_without_quarantine(lanes: Lanes) -> None:
    lane = lanes()
    lane.land([make_nameless(n, n) if n % 3 else event(n, amount=n) for n in range(10)])
    accept_nameless(lane)
    assert len(release(lane).ids) > 0
    lane.produce([make_nameless(12)])
    before, right = certify(lane), lane.aggregates()
    assert right == compute_released(lane)
    lose_ledger()
    expire(lane, 11)
    (day,) = lane.files().list_quarantine_days()
    lane.hdfs().delete(lane.layout.quarantine_file(day))
    assert lane.rebuild().written.holes == (), "what was released was read once"
    lane.ingest()
    repair(lane)
    assert (certify(lane), repair_all(lane), lane.aggregates()) == (before, 0, right)
    assert_proved(lane, 0, 5, 10)


def test_ledger_older_than_a_migration_counts_after_it(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes(most=10)
    lane.land([event(n, amount=n) for n in range(10)])
    repair(lane)
    backup, old = copy_ledger(), lane.toml.read_text()
    lane.land([event(n, amount=n) for n in range(10, 20)])
    change_contract(lane)
    cutovers = list_cutovers(lane.migrate())
    assert cutovers == {0: 20}
    lane.land([event(n, amount=n) for n in range(13, 23)] + [b"rubbish"])
    repair(lane)
    right, new, lines = lane.aggregates(), lane.toml.read_text(), lane.lines()
    assert right == compute_expected_of(lane, cutovers)
    expire(lane, 31)

    monkeypatch.setenv("ONCEOVER_POSTGRES", backup)
    succeed("ledger", "take-root", lane.name, "--reason", "restored")
    with pytest.raises(ContractChangedError, match=f"onceover pipelines migrate {lane.name}"):
        lane.ingest()
    lane.toml.write_text(old)
    name = list_contract_files(lane)[1].removesuffix(".json")
    with pytest.raises(UsageError, match=rf"not know the contract of \S+/{name}.json.*onceover pipelines migrate"):
        lane.ingest()
    failed = lane.repair_detected().failed
    assert [window for window, _ in failed] == [format_moment(moment(at)) for at in (10, 15, 20)]
    assert all(f"lines of {name} that never landed" in reason for _, reason in failed), failed
    assert all(f"onceover pipelines migrate {lane.name}" in reason for _, reason in failed)

    lane.toml.write_text(new.replace("value.at + 60000", "value.at + 120000"))
    with pytest.raises(UsageError, match=name):
        lane.migrate()
    lane.toml.write_text(new)
    assert list_cutovers(lane.migrate()) == cutovers, "as the file beside raw says"
    lane.turn()
    assert list_gaps(lane) == [(10, 31, "expired")]
    accept_loss(lane, 10, 31)
    lane.ingest()
    repair(lane)
    assert (list_gaps(lane), lane.aggregates()) == ([], right)
    assert (count_certified(lane), lane.lines()) == (5, lines)
    assert_proved(lane, 0, 10, 20)
