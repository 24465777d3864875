"""A repair requested before the log was found cut: it certifies no window, neither by its claim nor by its publish."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger, generation, start_of

from onceover.detection.certify import certify_from_ledger
from onceover.detection.evidence import read_evidence
from onceover.ledger import repair_requests
from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import RepairRequest
from onceover.ledger.windows import list_windows
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.repair import publish
from onceover.repair.publish import ProvedWindow

pytestmark = pytest.mark.stack
NAME = "gated"
CUTS = ["diverged_from = 7", "unknown_from = 7", "overwritten = '{[7,9)}'"]


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 10, rows=True)
    yield built
    large_ledger.drop(connection, built)


def request(connection: Connection) -> RepairRequest:
    request_id = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(3): []})
    return repair_requests.read_request(connection, NAME, request_id)


def cut_log(connection: Connection, change: str) -> None:
    connection.execute(f"UPDATE onceover.kafka_partition SET {change} WHERE pipeline = %s", [NAME])


def restore_log(connection: Connection) -> None:
    cut_log(connection, "diverged_from = NULL, unknown_from = NULL, overwritten = '{}'")


def list_repairs(connection: Connection, asked: RepairRequest) -> list[tuple[datetime, str, str]]:
    rows = connection.execute(
        "SELECT window_start, state, reason FROM onceover.repair WHERE request_id = %s ORDER BY 1", [asked.request_id]
    )
    return [(row["window_start"], row["state"], row["reason"]) for row in rows]


def read_state(connection: Connection, window: int) -> tuple[object, object]:
    (row,) = list_windows(connection, NAME, None, start_of(window), start_of(window + 1))
    return row["state"], row["certified_at"]


@pytest.mark.parametrize("change", CUTS)
def test_cut_log_leaves_what_would_be_certified(connection: Connection, ledger: LargeLedger, change: str) -> None:
    asked = request(connection)
    cut_log(connection, change)
    claimed, _ = repair_requests.claim(connection, asked)
    assert claimed == []
    ((start, state, reason),) = list_repairs(connection, asked)
    assert (start, state, "until ingest has read them again" in reason) == (start_of(3), "left", True)
    assert read_state(connection, 3)[0] != "repairing"
    restore_log(connection)
    claimed, _ = repair_requests.claim(connection, request(connection))
    assert [each.window_start for each in claimed] == [start_of(3)]


def test_uncompared_log_leaves_what_would_be_certified(connection: Connection, ledger: LargeLedger) -> None:
    asked = request(connection)
    claimed, _ = repair_requests.claim(connection, asked, is_compared=False)
    assert claimed == []
    assert "was not compared" in list_repairs(connection, asked)[0][2]


@pytest.mark.parametrize("change", CUTS)
def test_publish_leaves_a_window_of_a_log_cut_meanwhile(
    connection: Connection, ledger: LargeLedger, change: str
) -> None:
    before = read_state(connection, 3)
    asked = request(connection)
    (claimed,), _ = repair_requests.claim(connection, asked)
    digest = Digest(5, 1, 2, 3, 4)
    held = OffsetRange(KafkaPartition(generation(NAME), 0), 0, 5)
    rebuilt = RebuiltWindow(digest, 5, 90, (RebuiltRange(held, digest),))
    ledger.known.table.stage(connection, asked.stage, [f"{start_of(3).isoformat()}\ta\t5"])
    cut_log(connection, change)
    assert not publish.publish(connection, ledger.known, asked, ProvedWindow(claimed, rebuilt))
    assert (list_repairs(connection, asked)[0][1], read_state(connection, 3)) == ("left", before)
    restore_log(connection)
    (claimed,), _ = repair_requests.claim(connection, again := request(connection))
    ledger.known.table.stage(connection, again.stage, [f"{start_of(3).isoformat()}\ta\t5"])
    assert publish.publish(connection, ledger.known, again, ProvedWindow(claimed, rebuilt))
    assert read_state(connection, 3) != before


def test_ledger_certifies_nothing_of_a_log_cut_meanwhile(connection: Connection, ledger: LargeLedger) -> None:
    seen = read_evidence(connection, NAME, None, None, True)
    right = [(each, ()) for each in seen.evidence]
    assert len(right) == 10
    cut_log(connection, CUTS[1])
    assert certify_from_ledger(connection, ledger.known, right, "kim", "a test") == []
    restore_log(connection)
    assert len(certify_from_ledger(connection, ledger.known, right, "kim", "a test")) == 10
