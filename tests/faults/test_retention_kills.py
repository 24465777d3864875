"""Retention in a real process, paused or killed around the rename that moves a file aside."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest
from tests.faults.proxy import CutError, Proxy
from tests.integration.extras import produce, sum_up
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import backdate, wait_for_lease_end
from tests.integration.program import ONCEOVER, as_json

from onceover.config.endpoints import address
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
NOON, FIVE_PAST = "2026-03-01/1200.log", "2026-03-01/1205.log"


class Renaming:
    """A process of `onceover retention` behind a proxy that holds its first rename, before or after it is done."""

    def __init__(self, lane: Lane, *, is_done: bool) -> None:
        self.held, self._go_on, self._is_done, self._asks = threading.Event(), threading.Event(), is_done, False
        self.proxy = Proxy(urlparse(address("hdfs")).netloc, self._see_request, self._see_answer)
        self.process = subprocess.Popen(
            [ONCEOVER, "retention", lane.name],
            env={
                **os.environ,
                "ONCEOVER_WEBHDFS": address("webhdfs"),
                "ONCEOVER_HDFS": f"hdfs://{self.proxy.address}",
            },
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _see_request(self, data: bytes) -> bytes:
        if b"rename" in data and b"expired" in data:
            self._asks = True
            if not self._is_done:
                self._hold()
        return data

    def _see_answer(self, data: bytes) -> bytes:
        if self._asks and self._is_done:
            self._hold()
        return data

    def _hold(self) -> None:
        if not self.held.is_set():
            self.held.set()
            self._go_on.wait()
            if self.process.poll() is not None:
                raise CutError

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
        self._go_on.set()

    def go_on(self) -> None:
        self._go_on.set()


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    """Two certified windows that landed 40 days ago, of a pipeline that keeps raw for 30."""
    made = lanes(more='[storage]\nretention = "30d"')
    produce(made, range(10))
    made.ingest()
    assert made.detect().certified == 2
    backdate(made)
    return made


@pytest.fixture
def renaming(lane: Lane, request: pytest.FixtureRequest) -> Iterator[Renaming]:
    made = Renaming(lane, is_done=request.param)
    with made.proxy:
        try:
            assert made.held.wait(60), "the process has not reached a rename"
            yield made
        finally:
            made.kill()


def list_files(lane: Lane) -> set[str]:
    """List window files, and those moved aside without the number of their expiry."""
    return {name.rpartition(".")[0] if name.startswith("expired") else name for name in lane.raw()}


@pytest.mark.parametrize("renaming", [False, True], ids=["before", "after"], indirect=True)
def test_retention_killed_at_its_rename_is_done_again(lane: Lane, renaming: Renaming) -> None:
    wait_for(lambda: len(list_files(lane)) == 2, 30, "a listing")
    moved = [name for name in list_files(lane) if name.startswith("expired")]
    renaming.kill()
    assert len(moved) == renaming._is_done
    assert [row["state"] for row in as_json("windows", lane.name)] == ["expired", "expired"]
    wait_for_lease_end(lane)
    assert as_json("retention", lane.name)["left"] == 0
    assert list_files(lane) == {f"expired/{NOON}", f"expired/{FIVE_PAST}"}
    assert lane.aggregates() == sum_up(range(10))
