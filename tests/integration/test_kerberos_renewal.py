"""Tickets that end while ingest runs: a keytab of the environment renews them for every client, a cache does not."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.program import ONCEOVER
from tests.integration.secured_hdfs import (
    NAME_SERVICE,
    get_kdc,
    secured,
    set_login,
    shorten_tickets,
    take_ticket,
)

from onceover.raw.native_client import NativeClient
from onceover_local.stack import Stack
from onceover_local.stack.kerberos import REALM
from onceover_local.stack.process import wait_for

__all__ = ["secured"]
pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.largest]
TICKET_SECONDS = 10
PATIENCE = 120.0


@pytest.fixture(scope="module")
def spark_session() -> None:
    """Return None: each ingest has a Spark of its own, whose tickets end soon."""


@pytest.fixture(params=["hdfs", "webhdfs"])
def lane(secured: Stack, request: pytest.FixtureRequest, lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """A pipeline whose raw root belongs to `ingest`, by that protocol."""
    set_login(monkeypatch, get_kdc(secured).get_keytab("onceover"))
    made = lanes(more='[storage]\nraw_root = "/shared/{topic}"', idle_after="1h")
    made.toml.write_text(made.toml.read_text().replace("{topic}", made.topic))
    made.hdfs().makedirs(made.layout.raw_root)
    made.hdfs().set_owner(made.layout.raw_root, "ingest", "onceover")
    if request.param == "webhdfs":
        monkeypatch.setenv("ONCEOVER_HDFS", f"webhdfs://{NAME_SERVICE}")
    return made


@contextmanager
def run_ingest(lane: Lane, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        ingest = subprocess.Popen(
            [ONCEOVER, "ingest", lane.name],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            yield ingest
        finally:
            ingest.terminate()
            ingest.wait(60)


def count(lane: Lane) -> int:
    """Return how many records ingest has landed."""
    query = "SELECT coalesce(sum(records), 0) AS n FROM onceover.landing WHERE pipeline = %s"
    return int(lane.query(query, [lane.name])[0]["n"])


def land_one(lane: Lane, ingest: subprocess.Popen[bytes], log: Path) -> None:
    """Produce a record, and wait until that ingest has landed all."""
    lane.produce([event(0)])

    def has_landed() -> bool:
        assert ingest.poll() is None, log.read_text()
        return count(lane) == len(lane.log())

    wait_for(has_landed, PATIENCE, "a record to land")


def test_ingest_outlives_its_tickets_by_a_keytab(secured: Stack, lane: Lane, tmp_path: Path) -> None:
    """Its tasks append, its JVM asks for leases, and all connect again to a NameNode that starts again."""
    kdc, log = get_kdc(secured), tmp_path / "ingest.log"
    environment = {"KRB5_CLIENT_KTNAME": str(kdc.get_keytab("ingest")),
                   "KRB5_CONFIG": str(shorten_tickets(kdc, TICKET_SECONDS))}  # fmt: skip
    client, held = NativeClient(f"hdfs://{NAME_SERVICE}"), list[object]()
    with run_ingest(lane, log, **environment) as ingest:
        for _ in range(2):
            land_one(lane, ingest, log)
            held.append(client.call(lambda hdfs: hdfs.append(lane.window_file(0))))
            end = time.monotonic() + 2 * TICKET_SECONDS
            while time.monotonic() < end:
                land_one(lane, ingest, log)
            secured.kill_part("namenode")
            secured.start_part("namenode")
    assert "ingest" in kdc.process.log.read_text()
    assert set(lane.ids()) == lane.log().keys()


def test_ingest_by_a_ticket_cache_ends_with_its_ticket(
    secured: Stack, lane: Lane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kdc, log, cache = get_kdc(secured), tmp_path / "ingest.log", tmp_path / "cache"
    with monkeypatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(shorten_tickets(kdc, 3 * TICKET_SECONDS)))
        set_login(patch, kdc.get_keytab("ingest"))
        take_ticket(cache)
    with run_ingest(lane, log, KRB5_CLIENT_KTNAME="", KRB5CCNAME=f"FILE:{cache}") as ingest:
        land_one(lane, ingest, log)

        def has_ended() -> bool:
            lane.produce([event(count(lane))])
            return ingest.poll() is not None

        wait_for(has_ended, PATIENCE, "ingest to end")
        assert ingest.returncode == 1
    (line,) = (each for each in log.read_text().splitlines() if "access denied" in each)
    assert f"Ticket expired, for ingest@{REALM}; run `kinit ingest@{REALM}`" in line
