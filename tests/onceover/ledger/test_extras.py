"""Extras that certificates name: when they may count, which windows are judged again for them, and which keep raw."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import cast

import pytest
from bench import ledger_history
from bench.large_ledger import drop_pipeline
from bench.ledger_history import History
from psycopg.types.json import Jsonb
from tests.onceover.ledger.driven_pipeline import change_window

from onceover.context import PipelineContext
from onceover.detection.evidence import read_evidence
from onceover.detection.reopened import reopen_extras
from onceover.ledger import batches, claims, drivers, expiries, repair_requests, rollups
from onceover.ledger.columns import spans_as_json
from onceover.ledger.database import Connection
from onceover.ledger.extras import explain_wait, find_other_window, list_extras
from onceover.model.finding import Finding
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rollup import plan_rollups

pytestmark = pytest.mark.stack
WINDOWS = 24


@pytest.fixture
def history(connection: Connection) -> Iterator[History]:
    """Windows whose batches read offsets up to 2,400, all certified but the last."""
    built = History(f"x{uuid.uuid4().hex[:10]}", WINDOWS, batch_seconds=30, kafka_partitions=2)
    known = ledger_history.build(connection, built)
    yield built
    drop_pipeline(connection, known)


def of(history: History, start: int, end: int, leader_epoch: int | None = 0) -> EpochSpan:
    """Return a reading, by default under the epoch of all that landed."""
    return EpochSpan(OffsetRange(history.source(0), start, end), leader_epoch)


def state(connection: Connection, history: History, window: int, *extras: EpochSpan) -> None:
    """Have the window's last certificate count these extras."""
    connection.execute(
        'UPDATE onceover.certificate c SET extras = %s FROM onceover."window" w '
        "WHERE w.pipeline = %s AND w.window_start = %s AND c.certificate_id = w.certificate_id",
        [Jsonb(spans_as_json(extras)), history.name, history.start_of(window)],
    )


def change(connection: Connection, history: History, window: int, what: str) -> None:
    change_window(connection, history.name, history.start_of(window), what)


def test_extras_are_those_of_last_certificates(connection: Connection, history: History) -> None:
    first, second = (of(history, 2400, 2402, 3), of(history, 2405, 2406)), (of(history, 2500, 2501, None),)
    state(connection, history, 3, *first)
    state(connection, history, 5, *second)
    assert list_extras(connection, history.name) == {history.start_of(3): first, history.start_of(5): second}
    change(connection, history, 3, "expired_at = now()")
    change(connection, history, 5, "certificate_id = NULL")
    assert list_extras(connection, history.name) == {}
    assert list_extras(connection, history.name, of_expired=True) == {history.start_of(3): first}


@pytest.mark.parametrize(("by_value", "may_go"), [("false", 4), ("true", 9)])
def test_claim_counts_extras_that_may_go(connection: Connection, history: History, by_value: str, may_go: int) -> None:
    state(connection, history, 3, of(history, 2396, 2402), of(history, 7, 10, 1))  # another record than landed there
    change(connection, history, 3, f"version = version + 1, by_value = {by_value}")
    windows: dict[datetime, list[Finding]] = {history.start_of(n): [] for n in (3, WINDOWS - 1)}
    asked = repair_requests.create_request(connection, history.name, "kim", "why", windows)
    claimed, _ = claims.claim(connection, repair_requests.read_request(connection, history.name, asked))
    assert [each.may_go for each in claimed] == [may_go, 0]


def test_extra_waits_once_landed_or_while_a_batch_may_land_it(connection: Connection, history: History) -> None:
    def explain(start: int, end: int, leader_epoch: int | None = 0) -> str:
        extras = [of(history, start, end, leader_epoch), of(history, 2420, 2430)]
        return explain_wait(connection, history.name, extras) or "it counts"

    assert explain(2405, 2410) == "it counts"
    assert explain(2399, 2410).startswith("0a1b2c3d-0:2399-2400, which had landed nowhere, has landed meanwhile")
    assert explain(2399, 2410, None) != "it counts", "as it may be the same"
    assert explain(2399, 2410, 1) == "it counts", "the log was cut and has grown again: another record"
    epoch = drivers.acquire(connection, history.name, "test")
    batches.begin(connection, epoch, 1, [of(history, 2400, 2407).offsets])
    assert explain(2405, 2410).startswith("a batch in flight may still land 0a1b2c3d-0:2405-2407;")
    assert explain(2407, 2410) == "it counts"
    drivers.end_epoch(connection, epoch)
    assert explain(2405, 2410) == "it counts", "the batch's driver is dead, and the next one supersedes it"


def test_extra_of_another_window_is_found(connection: Connection, history: History) -> None:
    state(connection, history, 3, of(history, 2400, 2410))

    def find(window: int, extra: EpochSpan) -> object:
        return find_other_window(connection, history.name, history.start_of(window), [extra])

    found = (history.start_of(3), of(history, 2409, 2410).offsets)
    assert find(4, of(history, 2409, 2420)) == found
    assert find(4, of(history, 2410, 2420)) is None
    assert find(4, of(history, 2409, 2420, 1)) is None, "another record"
    assert find(3, of(history, 2409, 2420)) is None, "its own certificate"
    change(connection, history, 3, "expired_at = now()")
    assert find(4, of(history, 2409, 2420)) == found, "its rows are still there"


def test_window_of_an_extra_that_landed_is_judged_again(connection: Connection, history: History) -> None:
    state(connection, history, 3, of(history, 2400, 2410), of(history, 7, 8, 1))
    state(connection, history, 5, of(history, 2399, 2410))

    def judge() -> list[tuple[datetime, bool]]:
        reopen_extras(cast("PipelineContext", SimpleNamespace(ledger=connection, name=history.name)))
        seen = read_evidence(connection, history.name, None, None, every=False)
        return [(each.window_start, each.has_extras) for each in seen.evidence]

    assert judge() == [(history.start_of(5), True)]
    state(connection, history, 5)
    assert judge() == [(history.start_of(5), False)]


def test_raw_is_kept_until_extras_are_accepted_losses(connection: Connection, history: History) -> None:
    """Else their landing would count them twice, and nothing could rebuild the window."""
    name, start = history.name, history.start_of(5)

    def list_finished() -> tuple[set[datetime | None], int]:
        joined = sum(map(len, plan_rollups(rollups.list_old_batches(connection, name, {}))))
        return {file.window_start for file in expiries.list_expirable(connection, name, 0)}, joined

    files = expiries.list_expirable(connection, name, 0)
    run, _ = plan_rollups(rollups.list_old_batches(connection, name, {}))
    windows, joined = list_finished()
    assert start in windows
    state(connection, history, 5, of(history, 2399, 2400), of(history, 2400, 2401))
    assert list_finished() == (windows - {start}, joined - 20)
    assert expiries.count_kept_windows(connection, name, 0) == 2, "it, and the one that is not certified"
    assert not rollups.roll_up(connection, name, run), "stated since they were listed"
    frontier = "UPDATE onceover.kafka_partition SET frontier = 2401 WHERE pipeline = %s AND kafka_partition = 0"
    connection.execute(frontier, [name])
    assert list_finished() == (windows, joined)
    unknown = KafkaPartition(history.generation, 7)
    state(connection, history, 5, EpochSpan(OffsetRange(unknown, 0, 1), 0))
    assert list_finished()[0] == windows - {start}, "the ledger does not know its Kafka partition"
    state(connection, history, 5, of(history, 2399, 2402))
    assert expiries.mark_expired(connection, name, files, "kim", "why") == len(files) - 1
