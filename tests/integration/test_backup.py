"""The page of backup and restore, followed: its commands as they are shown, on the embedded PostgreSQL."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg import sql
from pyspark.sql import SparkSession
from tests.docs.shell import Shell, shell
from tests.docs.steps import RESTORES
from tests.integration.compaction import list_states
from tests.integration.events import count_events, event, fill_toml
from tests.integration.extras import accept_loss, repair
from tests.integration.lane import Lane
from tests.integration.other_ledger import open_server
from tests.integration.planted_failures import create_topic, expire, wait_for_lease_end

from onceover.config.endpoints import address
from onceover.errors import FencedError
from onceover.ingest.driver import Ingest
from onceover.ledger.database import upgrade_schema
from onceover.ledger.root import RootRefusedError
from onceover_local.stack import Stack
from onceover_local.stack.postgres import find_binaries
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.rare]
DUMP, CREATE, RESTORE, TAKE_ROOT, INGEST = RESTORES
BEFORE = list(range(10))
AFTER = [*range(10, 30), 2]  # a late record, of a window that was certified before the backup


@pytest.fixture
def reader(
    stack: Stack, spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Shell, Lane]]:
    """A reader's shell with PostgreSQL's programs and the pipeline `flights`, of this test's own topic and root."""
    name = f"b{uuid.uuid4().hex[:10]}"
    monkeypatch.setenv("PATH", f"{find_binaries()}{os.pathsep}{os.environ['PATH']}")
    superuser = address("postgres").replace("//onceover@", "//postgres@").replace("/onceover?", "/postgres?")
    monkeypatch.setenv("ADMIN", superuser)
    create_topic(name)
    with shell(tmp_path / "pipelines", name, {}) as made:
        made.cwd = tmp_path
        toml = made.folder / "flights.toml"
        toml.write_text(fill_toml(name, more=f'[storage]\nraw_root = "/onceover/{name}"'))
        with made.entered():
            upgrade_schema(address("postgres"))
        yield made, Lane("flights", name, spark_session, toml)
    with open_server() as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(CREATE.split()[-1])))


def produce(lane: Lane, amounts: Iterable[int]) -> None:
    """Produce a record for each amount, at the minute of that number."""
    lane.produce([event(n, amount=n) for n in amounts])


@contextmanager
def drive_past_backup(made: Shell, lane: Lane) -> Iterator[Ingest]:
    """Back up under a running driver, with certified windows; the same driver lands more after the backup."""
    produce(lane, BEFORE)
    with lane.driver() as driver:
        wait_for(lambda: driver.turn().every_window_closed, 30, "two windows to close")
        assert lane.detect().certified == 2
        follow(made, DUMP)
        produce(lane, AFTER)
        assert driver.turn().records == len(AFTER)
        yield driver


def follow(made: Shell, line: str, until: str | None = None) -> str:
    code, said = made.run(line, until)
    assert code == 0, said
    return said


def certify_all(lane: Lane, amounts: Iterable[int]) -> None:
    """Do what schedules do, and compare the result with what was produced."""
    repair(lane)
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == count_events(event(n, amount=n) for n in amounts)
    assert list_states(lane) == ["certified"] * 6
    assert lane.detect().request_id is None
    assert lane.audit()["equal"]


def test_backup_is_restored_as_the_page_shows(reader: tuple[Shell, Lane]) -> None:
    made, lane = reader
    original = made.postgres
    with made.entered():
        with drive_past_backup(made, lane):
            pass
        expire(lane, 15)  # five records that landed after the backup are in raw alone
    follow(made, CREATE)
    made.postgres = address("postgres").replace("/onceover?", f"/{CREATE.split()[-1]}?")
    follow(made, RESTORE)
    with made.entered():
        wait_for_lease_end(lane)  # the backup's driver was running
        raw = lane.raw()
        code, said = made.run(INGEST)
        assert (code, TAKE_ROOT.partition(" --")[0] in said) == (1, True), said
        with pytest.raises(RootRefusedError, match=TAKE_ROOT.partition(" --")[0]):
            lane.detect()
        assert lane.raw() == raw, "a refused ledger writes nothing"
        assert "belongs to this ledger now" in follow(made, TAKE_ROOT)
        follow(made, INGEST, until="nothing to read")
        accept_loss(lane, 10, 15)
        certify_all(lane, [*BEFORE, *AFTER])
    made.postgres = original
    with made.entered(), pytest.raises(RootRefusedError):
        lane.detect()


def test_restore_in_place_goes_unnoticed_until_take_root(reader: tuple[Shell, Lane]) -> None:
    made, lane = reader
    with made.entered(), drive_past_backup(made, lane) as driver:
        follow(made, RESTORE.replace(" --", " --clean --if-exists --", 1))
        lane.detect()  # not refused: the restored ledger knows the marker's driver
        wait_for_lease_end(lane)
        assert "it was this ledger's already" in follow(made, TAKE_ROOT)
        produce(lane, [29])
        with pytest.raises(FencedError):
            driver.turn()
        with lane.driver() as successor:
            assert successor.turn().records == 1
        certify_all(lane, [*BEFORE, *AFTER, 29])
